/** Why make before break delays resources at a client, as shown by debug pages, `explain`, metrics and the trace. */
import { afterEach, describe, expect, test } from 'vitest';
import { clusterType, listenerType, routeType } from '../../machines/discovery/xds/ads-types.ts';
import { describeWait } from '../../src/discovery/monitor/debug/wait-text.ts';
import { acknowledgedClient, moveRoute, type RolloutClient } from '../fixtures/rollout-client.ts';
import { AdsWorld } from '../simulation/ads-world.ts';

afterEach(() => {
  for (const world of AdsWorld.instances.splice(0)) expect(world.failure).toBeUndefined();
});

/** All delayed resources as `kind name: why`. */
const waitsOf = ({ world }: RolloutClient): string[] =>
  [clusterType, listenerType, routeType]
    .flatMap((typeUrl) => world.waitsOf(typeUrl))
    .map(describeWait)
    .map(({ kind, name, why }) => `${kind} ${name}: ${why}`);

/** Reasons in the trace for keeping a cluster, in order. */
const tracedReasons = ({ world }: RolloutClient): string[] =>
  world.records.flatMap((record) => {
    const event = (record as { event?: { type?: string; state?: string; clusters?: string[] } }).event;
    return event?.type === 'clusters.retained' ? [`${event.state} ${event.clusters!.join()}`] : [];
  });

/** The route moves to b, and a is removed. */
function replaceCluster(client: RolloutClient): void {
  client.source.remove(clusterType, 'a');
  moveRoute(client);
}

describe.each([
  ['state of the world', false],
  ['delta', true],
])('%s', (_, delta) => {
  test('debug pages show why a removed cluster is kept, from the last route that names it until its removal', () => {
    const client = acknowledgedClient(delta);
    replaceCluster(client);
    const response = client.world.read()!;
    expect(waitsOf(client)).toEqual([
      'warming b: usable when its endpoints are sent',
      'kept a: not configured, kept while route.v3.RouteConfiguration r names it',
      'held r: names clusters that are not warmed yet: b',
    ]);
    client.ack(client.requestEndpoints('b'), ['a', 'b']);
    client.ack(response);
    // The client has read the route, but not acknowledged it.
    const route = client.world.read()!;
    expect(waitsOf(client)).toEqual([
      'kept a: not configured, kept while the proxy has not acknowledged its latest listeners and routes',
    ]);
    client.ack(route, ['r']);
    expect(waitsOf(client)).toEqual([
      'kept a: not configured, removed in at most 10 s: requests that chose a route before may still use it',
    ]);
    client.world.clock.advance(5_000);
    expect(waitsOf(client)).toEqual([
      'kept a: not configured, removed in at most 5 s, or with the next change of clusters',
    ]);
    client.world.clock.advance(5_000);
    expect(waitsOf(client)).toEqual([]);
    expect(tracedReasons(client)).toEqual(['named a', 'lingering a', 'removable a']);
    expect([...client.world.retainedCounts.values()].every((count) => count === 0)).toBe(true);
  });

  test('a cluster that no route names waits for the ACK of the type that named it', () => {
    const client = acknowledgedClient(delta);
    client.source.setNaming(routeType, 'r');
    client.world.push(routeType);
    const route = client.world.read()!;
    client.source.remove(clusterType, 'a');
    client.world.push(clusterType);
    expect(waitsOf(client)).toContain(
      'kept a: not configured, kept until the proxy acknowledges route.v3.RouteConfiguration without it',
    );
    expect(client.world.retainedCounts.get('unacknowledged')).toBe(1);
    expect(client.world.records.map((record) => JSON.stringify(record)).join()).toContain(
      `"state":"unacknowledged","clusters":["a"],"unacknowledged":["${routeType}"]`,
    );
    client.ack(route, ['r']);
    expect(client.world.retainedCounts.get('unacknowledged')).toBe(0);
  });

  test('a cluster that is not usable within the limit is shown as given up, with its timeout', () => {
    const client = acknowledgedClient(delta);
    client.source.usability.set('b', { usableAfter: 'warming', assignment: 'b', secrets: new Set() });
    client.source.set(clusterType, 'b');
    client.source.setNaming(routeType, 'r', 'b');
    client.world.push(clusterType, routeType);
    client.world.read();
    expect(waitsOf(client)).toEqual([
      'warming b: usable when the proxy acknowledges clusters: it resolves names, checks health or fetches endpoints or certificates',
      'held r: names clusters that are not warmed yet: b',
    ]);
    client.world.clock.advance(5_000);
    expect(waitsOf(client)).toEqual([
      'given up b: not usable, or not acknowledged, within the limit: sent with a time limit of 1 s for endpoints and certificates until its configuration changes',
    ]);
    expect(client.world.givenUp).toBe(1);
    client.world.call.emit('cancelled');
    expect(client.world.givenUp).toBe(0);
  });

  test('clusters that a previous connection retained stay retained if the client reconnects and sends no ACK', () => {
    const { source, world } = acknowledgedClient(delta);
    world.call.emit('cancelled');
    const secondWorld = new AdsWorld({ isDelta: delta, source, clock: world.clock, hasMakeBeforeBreak: true });
    const { version } = source.types.get(clusterType)!.get('a')!;
    if (delta) secondWorld.sendDelta({ typeUrl: clusterType, initialResourceVersions: { a: version } });
    else secondWorld.sendSotw({ typeUrl: clusterType, versionInfo: 'v' });
    source.remove(clusterType, 'a');
    secondWorld.push(clusterType);
    const response = secondWorld.read()!;
    if (delta) secondWorld.sendDelta({ typeUrl: clusterType, responseNonce: response.nonce });
    else secondWorld.sendSotw({ typeUrl: clusterType, responseNonce: response.nonce });
    const waits = secondWorld.waitsOf(clusterType).map(describeWait);
    expect(waits.filter(({ kind }) => kind === 'kept').map(({ why }) => why)).toEqual([
      'not configured, kept while the proxy may use listeners and routes of its previous connection',
    ]);
  });
});
