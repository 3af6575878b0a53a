/**
 * A delta client reconnects with a cluster that was removed while it was disconnected, and the cluster is configured again while the client still has
 * it.
 */
import { afterEach, expect, test } from 'vitest';
import { clusterType, endpointType, routeType } from '../../machines/discovery/xds/ads-types.ts';
import type { EncodedResource } from '../../src/discovery/xds/resource-source.ts';
import { acknowledgedClient, shortTexts } from '../fixtures/rollout-client.ts';
import { AdsWorld } from '../simulation/ads-world.ts';
import type { ScriptedSource } from '../simulation/scripted-source.ts';

afterEach(() => {
  for (const world of AdsWorld.instances.splice(0)) expect(world.failure).toBeUndefined();
});

interface ReconnectedClient {
  readonly world: AdsWorld;
  readonly source: ScriptedSource;
  /** The cluster as the client has it. */
  readonly knownCluster: EncodedResource;
  /** Reads and acknowledges all responses. */
  takeClusters(): string[];
}

/** A client with clusters a and b reconnects. Cluster b was removed while it was disconnected; a route may name b. */
function reconnectClient(namedClusters: readonly string[]): ReconnectedClient {
  const { source, world: previousWorld } = acknowledgedClient(true);
  source.set(clusterType, 'b');
  const knownResource = source.types.get(clusterType)!.get('b')!;
  previousWorld.call.emit('cancelled');
  source.remove(clusterType, 'b');
  source.setNaming(routeType, 'r', ...namedClusters);
  const world = new AdsWorld({ isDelta: true, source, clock: previousWorld.clock, hasMakeBeforeBreak: true });
  const take = (): string[] => {
    const response = world.read();
    if (response === undefined) return [];
    world.sendDelta({ typeUrl: response.typeUrl, responseNonce: response.nonce });
    return [shortTexts(response), ...take()];
  };
  const a = source.types.get(clusterType)!.get('a')!;
  world.sendDelta({ typeUrl: clusterType, initialResourceVersions: { a: a.version, b: knownResource.version } });
  world.sendDelta({ typeUrl: endpointType, resourceNamesSubscribe: ['a', 'b'] });
  world.sendDelta({ typeUrl: routeType, resourceNamesSubscribe: ['r'] });
  take();
  return { world, source, knownCluster: knownResource, takeClusters: take };
}

test('a client does not receive a returning cluster that it already has', () => {
  const { world, source, knownCluster, takeClusters } = reconnectClient(['a', 'b']);
  source.restore(clusterType, knownCluster);
  source.setNaming(routeType, 'r', 'b');
  world.push(clusterType, routeType);
  expect(takeClusters()).toEqual(['RouteConfiguration r']);
  source.set(clusterType, 'b');
  world.push(clusterType);
  expect(takeClusters()).toContain('Cluster b');
  source.remove(clusterType, 'b');
  source.setNaming(routeType, 'r', 'a');
  world.push(clusterType, routeType);
  takeClusters();
  world.clock.advance(100_000);
  expect(takeClusters()).toContain('Cluster -b');
});

test('a client receives a returning cluster that has changed', () => {
  const { world, source, takeClusters } = reconnectClient(['a', 'b']);
  source.set(clusterType, 'b');
  world.push(clusterType);
  expect(takeClusters()).toContain('Cluster b');
});

test('a client receives a returning cluster after the cluster was removed from the client', () => {
  const { world, source, knownCluster, takeClusters } = reconnectClient(['a']);
  world.clock.advance(100_000);
  expect(takeClusters()).toContain('Cluster -b');
  source.restore(clusterType, knownCluster);
  world.push(clusterType);
  expect(takeClusters()).toContain('Cluster b');
});

test('a client receives a cluster that returns a second time in its original version', () => {
  const { world, source, knownCluster, takeClusters } = reconnectClient(['a']);
  source.set(clusterType, 'b');
  world.push(clusterType);
  takeClusters();
  source.remove(clusterType, 'b');
  world.push(clusterType);
  world.clock.advance(100_000);
  expect(takeClusters()).toContain('Cluster -b');
  source.restore(clusterType, knownCluster);
  world.push(clusterType);
  expect(takeClusters()).toContain('Cluster b');
});

test('a client receives a route that it requested before the push of the returning cluster', () => {
  const { world, source, knownCluster, takeClusters } = reconnectClient(['a', 'b']);
  source.restore(clusterType, knownCluster);
  source.setNaming(routeType, 'other', 'b');
  world.sendDelta({ typeUrl: routeType, resourceNamesSubscribe: ['other'] });
  expect(takeClusters()).toEqual([]);
  world.push(clusterType, routeType);
  expect(takeClusters()).toEqual(['RouteConfiguration other']);
});

test('a client receives each later change of a returning cluster, including a change back to the original version', () => {
  const { world, source, knownCluster, takeClusters } = reconnectClient(['a', 'b']);
  source.restore(clusterType, knownCluster);
  world.push(clusterType);
  expect(takeClusters()).toEqual([]);
  source.set(clusterType, 'b');
  world.push(clusterType);
  expect(takeClusters()).toContain('Cluster b');
  source.restore(clusterType, knownCluster);
  world.push(clusterType);
  expect(takeClusters()).toContain('Cluster b');
});
