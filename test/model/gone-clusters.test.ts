/** A cluster is sent, and removed by a later change before the client requests its endpoints: no route leads to it. */
import { afterEach, describe, expect, test } from 'vitest';
import { clusterType, endpointType, routeType } from '../../machines/discovery/xds/ads-types.ts';
import { acknowledgedClient, moveRoute } from '../fixtures/rollout-client.ts';
import { AdsWorld, type ClientResponse } from '../simulation/ads-world.ts';

afterEach(() => {
  for (const world of AdsWorld.instances.splice(0)) expect(world.failure).toBeUndefined();
});

describe.each([
  ['state of the world', false],
  ['delta', true],
])('%s', (_, delta) => {
  test.each([
    ['endpoints', 'assignment', 'none'],
    ['endpoints and a health check', 'warming', 'none'],
    ['endpoints and a secret', 'assignment', 'late'],
  ] as const)(
    'held routes are skipped and later ones are sent if a removed cluster waits for %s',
    (_name, after, secret) => {
      const client = acknowledgedClient(delta);
      const { source, world } = client;
      for (const name of ['b', 'c']) {
        source.usability.set(name, {
          usableAfter: after,
          assignment: name,
          secrets: new Set(secret === 'none' ? [] : [secret]),
        });
      }
      moveRoute(client);
      const clusters = world.read()!;
      source.set(clusterType, 'c');
      source.set(endpointType, 'c');
      source.setNaming(routeType, 'r', 'c');
      source.remove(clusterType, 'b');
      // As in the generators: an unknown name has no endpoints.
      source.set(endpointType, 'b');
      world.push(clusterType, endpointType, routeType);
      const sentRoutes: string[] = [];
      const receive = (response: ClientResponse): void => {
        if (response.typeUrl === routeType) sentRoutes.push(...response.resources.values());
        client.ack(response, { [routeType]: ['r'], [endpointType]: ['a', 'b', 'c'] }[response.typeUrl]);
        if (response.typeUrl === clusterType && response.resources.has('c')) receive(client.requestEndpoints('c'));
      };
      receive(client.requestEndpoints('b'));
      client.ack(clusters);
      for (let next = world.read(); next !== undefined; next = world.read()) receive(next);
      expect(sentRoutes).toEqual([source.contentsOf(routeType).get('r')]);
    },
  );
});
