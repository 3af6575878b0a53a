/** A route configuration is requested while another one is delayed (src/discovery/xds/rollout/held-resources.ts). */
import { afterEach, describe, expect, test } from 'vitest';
import { clusterType, endpointType, routeType } from '../../machines/discovery/xds/ads-types.ts';
import { acknowledgedClient, type RolloutClient } from '../fixtures/rollout-client.ts';
import { AdsWorld } from '../simulation/ads-world.ts';

afterEach(() => {
  for (const world of AdsWorld.instances.splice(0)) expect(world.failure).toBeUndefined();
});

describe.each([
  ['state of the world', false],
  ['delta', true],
])('%s', (_, delta) => {
  /** Route r moves to cluster b, which the client is warming. */
  function withHeldRoute(): RolloutClient {
    const client = acknowledgedClient(delta);
    const { source, world } = client;
    source.usability.set('b', { usableAfter: 'warming', assignment: 'b', secrets: new Set() });
    source.set(clusterType, 'b');
    source.setNaming(routeType, 'r', 'b');
    source.setNaming(routeType, 'q', 'a');
    world.push(clusterType, routeType);
    return client;
  }

  const request = (client: RolloutClient): void =>
    client.request(routeType, delta ? ['q'] : ['r', 'q'], client.world.watch(routeType)!.nonceSent);

  /** Contents of routes that the client reads, with its subscribed names. */
  function readRoutes({ world, ...client }: RolloutClient): string[] {
    return world.readAll().flatMap(({ typeUrl, nonce: responseNonce, resources }) => {
      if (typeUrl !== routeType) return [];
      if (client.delta) world.sendDelta({ typeUrl, responseNonce });
      else world.sendSotw({ typeUrl, responseNonce, resourceNames: ['r', 'q'] });
      return [...resources.values()];
    });
  }

  const contentOf = ({ source }: RolloutClient, name: string): string => source.contentsOf(routeType).get(name)!;

  test('a held-back route is sent when its clusters are usable, even if it is also requested', () => {
    const client = withHeldRoute();
    const clusters = client.world.read()!;
    request(client);
    expect(readRoutes(client)).toEqual([contentOf(client, 'q')]);
    client.ack(clusters);
    expect(readRoutes(client)).toEqual([contentOf(client, 'r')]);
  });

  test('a held-back route is sent in its current version if all clusters of that version are usable', () => {
    const client = withHeldRoute();
    const clusters = client.world.read()!;
    const { source, world } = client;
    source.set(clusterType, 'c');
    source.set(endpointType, 'c');
    source.setNaming(routeType, 'r', 'c');
    // The request arrives before the push.
    request(client);
    expect(readRoutes(client)).toEqual([contentOf(client, 'q')]);
    world.push(clusterType, endpointType, routeType);
    client.ack(clusters);
    expect(readRoutes(client)).not.toContain(contentOf(client, 'r'));
    client.requestEndpoints('c');
    expect(readRoutes(client)).toEqual([contentOf(client, 'r')]);
  });

  test('a held-back route is dropped when a later version that waits for no cluster is sent', () => {
    const client = withHeldRoute();
    const clusters = client.world.read()!;
    const { source } = client;
    source.setNaming(routeType, 'r', 'a');
    source.set(clusterType, 'c');
    source.setNaming(routeType, 'q', 'c');
    request(client);
    expect(readRoutes(client)).toEqual([contentOf(client, 'r')]);
    client.ack(clusters);
    expect(readRoutes(client)).not.toContainEqual(expect.stringMatching(/^r=/));
  });
});
