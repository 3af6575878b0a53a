/** Routes that a client no longer subscribes to do not keep clusters (machines/discovery/xds/cluster-removal.ts). */
import { afterEach, describe, expect, test } from 'vitest';
import { clusterType, endpointType, routeType } from '../../machines/discovery/xds/ads-types.ts';
import { acknowledgedClient, type RolloutClient } from '../fixtures/rollout-client.ts';
import { AdsWorld, type ClientResponse } from '../simulation/ads-world.ts';

afterEach(() => {
  for (const world of AdsWorld.instances.splice(0)) expect(world.failure).toBeUndefined();
});

describe.each([
  ['state of the world', false],
  ['delta', true],
])('%s', (_, delta) => {
  /** Unsubscribes like Envoy when no listener uses the routes any more. */
  function unsubscribe({ world }: RolloutClient): void {
    if (delta) world.sendDelta({ typeUrl: routeType, resourceNamesUnsubscribe: ['r'] });
    else world.sendSotw({ typeUrl: routeType, responseNonce: world.watch(routeType)!.nonceSent, resourceNames: [] });
  }

  /** Removes cluster a from the configuration, and adds cluster b. */
  function removeCluster(client: RolloutClient): void {
    client.source.remove(clusterType, 'a');
    client.source.set(clusterType, 'b');
    client.source.set(endpointType, 'b');
    client.world.push(clusterType);
    client.take();
  }

  const isRemoved = (responses: readonly ClientResponse[]): boolean =>
    responses.some(({ typeUrl, resources, removedNames }) =>
      typeUrl !== clusterType ? false : delta ? removedNames.includes('a') : !resources.has('a'),
    );

  test('a cluster that only unsubscribed routes named is removed after the delay', () => {
    const client = acknowledgedClient(delta);
    unsubscribe(client);
    removeCluster(client);
    expect(client.world.rollout.retained).toMatchObject([{ name: 'a', state: 'lingering' }]);
    client.world.clock.advance(20_000);
    expect(isRemoved(client.world.readAll())).toBe(true);
  });

  test('a cluster that is kept for routes is removed after the client unsubscribes from them', () => {
    const client = acknowledgedClient(delta);
    removeCluster(client);
    expect(client.world.rollout.retained).toMatchObject([{ name: 'a', state: 'named' }]);
    client.world.clock.advance(100_000);
    expect(isRemoved(client.world.readAll())).toBe(false);
    unsubscribe(client);
    client.world.clock.advance(4_999);
    expect(isRemoved(client.world.readAll())).toBe(false);
    client.world.clock.advance(20_000);
    expect(isRemoved(client.world.readAll())).toBe(true);
  });

  test('a rejection of unsubscribed routes does not delay a removal', () => {
    const client = acknowledgedClient(delta);
    client.source.setNaming(routeType, 'r', 'b');
    client.source.set(clusterType, 'b');
    client.source.set(endpointType, 'b');
    client.world.push(routeType);
    client.ack(client.world.read()!, ['r'], 'rejected');
    unsubscribe(client);
    removeCluster(client);
    client.world.clock.advance(20_000);
    expect(isRemoved(client.world.readAll())).toBe(true);
  });
});
