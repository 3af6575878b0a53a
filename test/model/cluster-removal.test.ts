/** When clusters that are no longer configured are removed, and what is removed with them (machines/discovery/xds/cluster-removal.ts). */
import { afterEach, describe, expect, test } from 'vitest';
import { clusterType, listenerType } from '../../machines/discovery/xds/ads-types.ts';
import { acknowledgedClient, type RolloutClient, shortTexts } from '../fixtures/rollout-client.ts';
import { AdsWorld } from '../simulation/ads-world.ts';

afterEach(() => {
  for (const world of AdsWorld.instances.splice(0)) expect(world.failure).toBeUndefined();
});

/** A client that has additional clusters, which no resource names. */
function withClusters(delta: boolean, names: readonly string[]): RolloutClient {
  const client = acknowledgedClient(delta);
  for (const name of names) {
    client.source.usability.set(name, { usableAfter: 'at once', assignment: name, secrets: new Set() });
    client.source.set(clusterType, name);
  }
  client.world.push(clusterType);
  client.take();
  return client;
}

function removeClusters(client: RolloutClient, names: readonly string[]): void {
  for (const name of names) client.source.remove(clusterType, name);
  client.world.push(clusterType);
}

describe.each([
  ['state of the world', false],
  ['delta', true],
])('%s', (_, delta) => {
  test('a removal that is due is sent with the next response with clusters', () => {
    const client = withClusters(delta, ['b']);
    removeClusters(client, ['b']);
    client.world.clock.advance(5_000);
    expect(client.take()).toEqual([]);
    client.source.usability.set('c', { usableAfter: 'at once', assignment: 'c', secrets: new Set() });
    client.source.set(clusterType, 'c');
    client.world.push(clusterType);
    expect(client.take()).toEqual([delta ? 'Cluster c -b' : 'Cluster a c']);
    client.world.clock.advance(100_000);
    expect(client.take()).toEqual([]);
  });

  test('a removal that is not due is not sent with the next response with clusters', () => {
    const client = withClusters(delta, ['b']);
    removeClusters(client, ['b']);
    client.world.clock.advance(4_000);
    client.source.usability.set('c', { usableAfter: 'at once', assignment: 'c', secrets: new Set() });
    client.source.set(clusterType, 'c');
    client.world.push(clusterType);
    expect(client.take()).toEqual([delta ? 'Cluster c' : 'Cluster a b c']);
  });

  test('removals that become due successively are sent in one response', () => {
    const client = withClusters(delta, ['b', 'c']);
    removeClusters(client, ['b']);
    client.world.clock.advance(2_000);
    removeClusters(client, ['c']);
    client.world.clock.advance(100_000);
    expect(client.take()).toEqual([delta ? 'Cluster -b -c' : 'Cluster a']);
  });

  test('clusters of a replaced listener are kept for the drain time of the node', () => {
    const client = acknowledgedClient(delta, { metadata: { PROXY_CONFIG: { drainDuration: '100s' } } });
    client.source.usability.set('b', { usableAfter: 'at once', assignment: 'b', secrets: new Set() });
    client.source.set(clusterType, 'b');
    client.source.setNaming(listenerType, 'l', 'b');
    client.world.push(clusterType);
    client.take();
    client.request(listenerType);
    client.take();
    client.source.setNaming(listenerType, 'l', 'a');
    client.source.remove(clusterType, 'b');
    client.world.push(clusterType, listenerType);
    client.take();
    // The new listener may wait for a certificate for 15 s.
    client.world.clock.advance(119_999);
    expect(client.world.rollout.retained).toMatchObject([{ name: 'b', state: 'lingering' }]);
    client.world.clock.advance(5_001);
    expect(client.take()).toEqual([delta ? 'Cluster -b' : 'Cluster a']);
  });

  test('the drain time starts when the client acknowledges the new listener', () => {
    const client = acknowledgedClient(delta);
    client.source.usability.set('b', { usableAfter: 'at once', assignment: 'b', secrets: new Set() });
    client.source.set(clusterType, 'b');
    client.source.setNaming(listenerType, 'l', 'b');
    client.world.push(clusterType);
    client.take();
    client.request(listenerType);
    client.take();
    client.source.setNaming(listenerType, 'l', 'a');
    client.source.remove(clusterType, 'b');
    client.world.push(clusterType, listenerType);
    const sentResponse = client.world.read()!;
    client.world.clock.advance(100_000);
    client.ack(sentResponse);
    client.world.clock.advance(60_000);
    expect(client.world.rollout.retained).toMatchObject([{ name: 'b', state: 'lingering', drains: true }]);
  });

  test('at most 1,000 clusters are kept, and the oldest are removed early with a report', () => {
    const names = Array.from({ length: 1_002 }, (_unused, index) => `b${index}`);
    const client = withClusters(delta, names);
    removeClusters(client, names.slice(0, 1));
    expect(client.take()).toEqual([]);
    removeClusters(client, names.slice(1));
    const [sentResponse] = client.world.readAll();
    const retainedNames = client.world.rollout.retained.map(({ name }) => name);
    expect(retainedNames).toEqual(names.slice(2));
    if (delta) expect(shortTexts(sentResponse!)).toBe('Cluster -b0 -b1');
    else expect([...sentResponse!.resources.keys()].sort()).toEqual(['a', ...retainedNames].sort());
    const reports = client.world.records.filter((record) => JSON.stringify(record).includes('"clusters.evicted"'));
    expect(JSON.stringify(reports)).toContain('["b0","b1"]');
    expect(client.world.evictedCount).toBe(2);
  });
});
