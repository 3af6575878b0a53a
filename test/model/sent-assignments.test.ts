/** A response with endpoints makes only those new clusters usable whose endpoints it contains (delta). */
import { afterEach, expect, test } from 'vitest';
import { clusterType, endpointType, routeType } from '../../machines/discovery/xds/ads-types.ts';
import { acknowledgedClient, moveRoute, shortTexts } from '../fixtures/rollout-client.ts';
import { AdsWorld } from '../simulation/ads-world.ts';

afterEach(() => {
  for (const world of AdsWorld.instances.splice(0)) expect(world.failure).toBeUndefined();
});

test('a route waits until endpoints that the client has from another cluster are sent again', () => {
  const client = acknowledgedClient(true);
  const { source, world } = client;
  source.set(endpointType, 'a');
  world.push(endpointType);
  const unacknowledged = world.read()!;
  // Envoy has the endpoints of b and does not request them, but waits until they are sent.
  source.usability.set('b', { usableAfter: 'assignment', assignment: 'a', secrets: new Set() });
  for (const name of ['b', 'other']) source.set(clusterType, name);
  source.set(endpointType, 'other');
  source.setNaming(routeType, 'r', 'b');
  world.push(clusterType, routeType);
  expect(client.read()).toEqual(['Cluster b other']);
  expect(shortTexts(client.requestEndpoints('other'))).toBe('ClusterLoadAssignment other');
  expect(client.read()).toEqual([]);
  const { typeUrl } = unacknowledged;
  world.sendDelta({ typeUrl, responseNonce: world.watch(typeUrl)!.nonceSent });
  expect(client.read()).toEqual(['ClusterLoadAssignment a', 'RouteConfiguration r']);
});

test('a route waits for endpoints that a reconnected client has not requested', () => {
  const previousClient = acknowledgedClient(true);
  const { source } = previousClient;
  const version = source.types.get(clusterType)!.get('a')!.version;
  previousClient.world.call.emit('cancelled');
  moveRoute(previousClient);
  const world = new AdsWorld({ isDelta: true, source, clock: previousClient.world.clock, hasMakeBeforeBreak: true });
  const read = () => world.readAll().map(shortTexts);
  world.sendDelta({ typeUrl: clusterType, initialResourceVersions: { a: version } });
  expect(read()).toEqual(['Cluster b']);
  world.sendDelta({ typeUrl: endpointType, resourceNamesSubscribe: ['a'] });
  world.sendDelta({ typeUrl: routeType, resourceNamesSubscribe: ['r'] });
  expect(read()).toEqual(['ClusterLoadAssignment a']);
  world.sendDelta({ typeUrl: endpointType, resourceNamesSubscribe: ['b'] });
  expect(read()).toEqual(['ClusterLoadAssignment b', 'RouteConfiguration r']);
});
