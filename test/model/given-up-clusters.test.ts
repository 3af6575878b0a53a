/** A cluster that does not become usable is given up, but its client is not (machines/discovery/xds/cluster-limit.ts). */
import { afterEach, describe, expect, test } from 'vitest';
import { clusterType, endpointType, routeType } from '../../machines/discovery/xds/ads-types.ts';
import { acknowledgedClient, moveRoute, type RolloutClient, shortTexts } from '../fixtures/rollout-client.ts';
import { AdsWorld } from '../simulation/ads-world.ts';
import { limitedMark } from '../simulation/scripted-source.ts';

afterEach(() => {
  for (const world of AdsWorld.instances.splice(0)) expect(world.failure).toBeUndefined();
});

/** Names of clusters that the client receives with a time limit for their dependencies. */
function limitedClusters(client: RolloutClient): string[] {
  const clusters = client.world.readAll().filter(({ typeUrl }) => typeUrl === clusterType);
  const contents = clusters.flatMap(({ resources }) => [...resources.values()]);
  return contents.filter((content) => content.endsWith(limitedMark)).map((content) => content.split('=')[0]!);
}

/** Sends the cluster in a new version, which fetches this secret. */
function fetchSecret({ source, world }: RolloutClient, name: string, secret: string): void {
  source.set(clusterType, name);
  const content = source.contentsOf(clusterType).get(name)!;
  for (const form of [content, content + limitedMark]) {
    source.usability.set(form, { usableAfter: 'assignment', assignment: name, secrets: new Set([secret]) });
  }
  world.push(clusterType);
}

describe.each([
  ['state of the world', false],
  ['delta', true],
])('%s', (_, delta) => {
  test('a new cluster that is not usable in time is sent again with a timeout for what it fetches', () => {
    const client = acknowledgedClient(delta);
    moveRoute(client);
    client.read();
    client.world.clock.advance(5_000);
    expect(limitedClusters(client)).toEqual(['b']);
    expect(client.world.rollout.givenUp).toMatchObject([{ name: 'b', isNew: true }]);
  });

  test('a new cluster is also given up if no route names it', () => {
    const client = acknowledgedClient(delta);
    client.source.usability.set('b', { usableAfter: 'warming', assignment: 'b', secrets: new Set() });
    client.source.set(clusterType, 'b');
    client.world.push(clusterType);
    client.read();
    client.world.clock.advance(4_999);
    expect(client.read()).toEqual([]);
    client.world.clock.advance(1);
    expect(limitedClusters(client)).toEqual(['b']);
    expect(client.world.awaitsClusters).toBe(false);
  });

  test('an in-place update that fetches a new secret is given up if clusters are not acknowledged in time', () => {
    const client = acknowledgedClient(delta);
    fetchSecret(client, 'a', 'late');
    client.read();
    client.world.clock.advance(5_000);
    expect(limitedClusters(client)).toEqual(['a']);
    expect(client.world.rollout.givenUp).toMatchObject([{ name: 'a', isNew: false }]);
    expect([...client.world.abandonedClusters]).toEqual(['a']);
  });

  test('no cluster is given up if clusters are acknowledged in time', () => {
    const client = acknowledgedClient(delta);
    fetchSecret(client, 'a', 'late');
    client.ack(client.world.read()!);
    client.world.clock.advance(100_000);
    expect(limitedClusters(client)).toEqual([]);
    expect(client.world.rollout).toMatchObject({ newClusters: [], givenUp: [] });
  });

  test.each([
    ['that it fetched before', 'a'],
    ['that another cluster has fetched', 'b'],
  ])('an in-place update that fetches a secret %s is not given up for a slow client', (_name, secretHolder) => {
    const client = acknowledgedClient(delta);
    client.source.usability.set('b', { usableAfter: 'at once', assignment: 'b', secrets: new Set() });
    fetchSecret(client, 'b', 'none');
    client.take();
    fetchSecret(client, secretHolder, 'shared');
    client.take();
    fetchSecret(client, 'a', 'shared');
    client.read();
    client.world.clock.advance(100_000);
    expect(limitedClusters(client)).toEqual([]);
  });

  test('an in-place update without a new secret is not given up for a slow client', () => {
    const client = acknowledgedClient(delta);
    client.source.set(clusterType, 'a');
    client.world.push(clusterType);
    client.read();
    client.world.clock.advance(100_000);
    expect(limitedClusters(client)).toEqual([]);
  });

  test('a cluster that was given up keeps its timeout in later responses until its configuration changes', () => {
    const client = acknowledgedClient(delta);
    moveRoute(client);
    client.read();
    client.world.clock.advance(5_000);
    const clusterResponse = client.world.readAll().find(({ typeUrl }) => typeUrl === clusterType)!;
    client.ack(clusterResponse);
    client.source.set(clusterType, 'c');
    client.world.push(clusterType);
    expect(limitedClusters(client)).toEqual(delta ? [] : ['b']);
    client.source.set(clusterType, 'b');
    client.world.push(clusterType);
    // The client does not acknowledge c.
    client.world.clock.advance(10_000);
    expect(limitedClusters(client)).toEqual([]);
    expect(client.world.rollout.givenUp.map(({ name }) => name)).not.toContain('b');
  });

  test('a cluster is given up again if its next version does not become usable either', () => {
    const client = acknowledgedClient(delta);
    moveRoute(client);
    client.read();
    client.world.clock.advance(5_000);
    expect(limitedClusters(client)).toEqual(['b']);
    // The client never acknowledged the earlier version of b.
    client.source.set(clusterType, 'b');
    client.world.push(clusterType);
    client.world.clock.advance(10_000);
    client.read();
    client.world.clock.advance(5_000);
    expect(client.world.rollout.givenUp.map(({ name }) => name)).toEqual(['b']);
  });

  test('a cluster that was given up and acknowledged is given up again if an update lacks the same secret', () => {
    const client = acknowledgedClient(delta);
    fetchSecret(client, 'a', 'missing');
    client.read();
    client.world.clock.advance(5_000);
    client.take();
    client.world.clock.advance(20_000);
    expect(client.world.rollout).toMatchObject({ newClusters: [], givenUp: [{ name: 'a' }] });
    fetchSecret(client, 'a', 'missing');
    expect(limitedClusters(client)).toEqual([]);
    client.world.clock.advance(5_000);
    expect(limitedClusters(client)).toEqual(['a']);
    expect(client.world.rollout.givenUp).toMatchObject([{ name: 'a', isNew: false }]);
  });

  test('the limit is paused, for at most its own duration, while no response can be sent to the client', () => {
    const congested = (): RolloutClient => {
      const client = acknowledgedClient(delta);
      // Requests are not read either, so the acknowledgement may be on its way.
      for (let index = 0; index < 3; index++) client.source.set(clusterType, `large-${index}`, 64 * 1_024);
      client.source.usability.set('b', { usableAfter: 'warming', assignment: 'b', secrets: new Set() });
      moveRoute(client);
      expect(client.world.state()).toBe('streaming.delivery.congested');
      return client;
    };
    const relieved = congested();
    relieved.world.clock.advance(7_499);
    relieved.take();
    relieved.world.clock.advance(100_000);
    expect([...relieved.world.abandonedClusters]).toEqual([]);
    const stuckClient = congested();
    stuckClient.world.clock.advance(9_999);
    expect([...stuckClient.world.abandonedClusters]).toEqual([]);
    stuckClient.world.clock.advance(1);
    expect([...stuckClient.world.abandonedClusters]).toContain('b');
  });

  test('a wait that starts late has the full limit, even if its cluster has been warming for long', () => {
    const client = acknowledgedClient(delta);
    client.source.usability.set('b', { usableAfter: 'warming', assignment: 'b', secrets: new Set() });
    client.source.set(clusterType, 'b');
    client.source.set(endpointType, 'b');
    client.world.push(clusterType);
    client.read();
    client.world.clock.advance(4_000);
    client.source.setNaming(routeType, 'r', 'b');
    client.world.push(routeType);
    client.world.clock.advance(1_500);
    expect(client.read()).toEqual([]);
    client.world.clock.advance(3_500);
    expect(client.read()).toContain('RouteConfiguration r');
  });

  test("unacknowledged clusters from a client's earlier stream are given up if they fetch secrets", () => {
    const { source, world } = acknowledgedClient(delta);
    const secondWorld = new AdsWorld({ isDelta: delta, source, clock: world.clock, hasMakeBeforeBreak: true });
    const content = source.contentsOf(clusterType).get('a')!;
    source.set(clusterType, 'a');
    const next = source.contentsOf(clusterType).get('a')!;
    source.usability.set(next, { usableAfter: 'assignment', assignment: 'a', secrets: new Set(['late']) });
    if (delta) secondWorld.sendDelta({ typeUrl: clusterType, initialResourceVersions: { a: content.split('=')[1]! } });
    else secondWorld.sendSotw({ typeUrl: clusterType, versionInfo: 'v' });
    expect(secondWorld.readAll().map(shortTexts)).toEqual(['Cluster a']);
    secondWorld.clock.advance(5_000);
    expect(secondWorld.rollout.givenUp.map(({ name }) => name)).toEqual(['a']);
    expect(secondWorld.readAll().map(({ resources }) => [...resources.values()].join())).toEqual([next + limitedMark]);
  });
});
