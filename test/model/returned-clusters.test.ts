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
  for (const world of AdsWorld.created.splice(0)) expect(world.failed).toBeUndefined();
});

interface Reconnected {
  readonly world: AdsWorld;
  readonly source: ScriptedSource;
  /** The cluster as the client has it. */
  readonly known: EncodedResource;
  /** Reads and acknowledges all responses. */
  take(): string[];
}

/** A client with clusters a and b reconnects. Cluster b was removed while it was disconnected; a route may name b. */
function reconnected(namedClusters: readonly string[]): Reconnected {
  const { source, world: previousWorld } = acknowledgedClient(true);
  source.set(clusterType, 'b');
  const knownResource = source.types.get(clusterType)!.get('b')!;
  previousWorld.call.emit('cancelled');
  source.remove(clusterType, 'b');
  source.setNaming(routeType, 'r', ...namedClusters);
  const world = new AdsWorld({ delta: true, source, clock: previousWorld.clock, hasMakeBeforeBreak: true });
  const take = (): string[] => {
    const response = world.read();
    if (response === undefined) return [];
    world.delta({ typeUrl: response.typeUrl, responseNonce: response.nonce });
    return [shortTexts(response), ...take()];
  };
  const a = source.types.get(clusterType)!.get('a')!;
  world.delta({ typeUrl: clusterType, initialResourceVersions: { a: a.version, b: knownResource.version } });
  world.delta({ typeUrl: endpointType, resourceNamesSubscribe: ['a', 'b'] });
  world.delta({ typeUrl: routeType, resourceNamesSubscribe: ['r'] });
  take();
  return { world, source, known: knownResource, take };
}

test('a client does not receive a returning cluster that it already has', () => {
  const { world, source, known, take } = reconnected(['a', 'b']);
  source.restore(clusterType, known);
  source.setNaming(routeType, 'r', 'b');
  world.push(clusterType, routeType);
  expect(take()).toEqual(['RouteConfiguration r']);
  source.set(clusterType, 'b');
  world.push(clusterType);
  expect(take()).toContain('Cluster b');
  source.remove(clusterType, 'b');
  source.setNaming(routeType, 'r', 'a');
  world.push(clusterType, routeType);
  take();
  world.clock.advance(100_000);
  expect(take()).toContain('Cluster -b');
});

test('a client receives a returning cluster that has changed', () => {
  const { world, source, take } = reconnected(['a', 'b']);
  source.set(clusterType, 'b');
  world.push(clusterType);
  expect(take()).toContain('Cluster b');
});

test('a client receives a returning cluster after the cluster was removed from the client', () => {
  const { world, source, known, take } = reconnected(['a']);
  world.clock.advance(100_000);
  expect(take()).toContain('Cluster -b');
  source.restore(clusterType, known);
  world.push(clusterType);
  expect(take()).toContain('Cluster b');
});

test('a client receives a cluster that returns a second time in its original version', () => {
  const { world, source, known, take } = reconnected(['a']);
  source.set(clusterType, 'b');
  world.push(clusterType);
  take();
  source.remove(clusterType, 'b');
  world.push(clusterType);
  world.clock.advance(100_000);
  expect(take()).toContain('Cluster -b');
  source.restore(clusterType, known);
  world.push(clusterType);
  expect(take()).toContain('Cluster b');
});

test('a client receives a route that it requested before the push of the returning cluster', () => {
  const { world, source, known, take } = reconnected(['a', 'b']);
  source.restore(clusterType, known);
  source.setNaming(routeType, 'other', 'b');
  world.delta({ typeUrl: routeType, resourceNamesSubscribe: ['other'] });
  expect(take()).toEqual([]);
  world.push(clusterType, routeType);
  expect(take()).toEqual(['RouteConfiguration other']);
});

test('a client receives each later change of a returning cluster, including a change back to the original version', () => {
  const { world, source, known, take } = reconnected(['a', 'b']);
  source.restore(clusterType, known);
  world.push(clusterType);
  expect(take()).toEqual([]);
  source.set(clusterType, 'b');
  world.push(clusterType);
  expect(take()).toContain('Cluster b');
  source.restore(clusterType, known);
  world.push(clusterType);
  expect(take()).toContain('Cluster b');
});
