/** Make before break on one stream: what waits for which clusters, and for how long (machines/discovery/xds/cluster-rollout.ts). */
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { clusterType, endpointType, listenerType, routeType } from '../../machines/discovery/xds/ads-types.ts';
import { checkTrace } from '../../src/debugger/check/check.ts';
import { formatReport } from '../../src/debugger/check/check-report-text.ts';
import { loadDiagrams } from '../../src/debugger/diagram/load.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { acknowledgedClient, moveRoute, RolloutClient, shortTexts } from '../fixtures/rollout-client.ts';
import { AdsWorld } from '../simulation/ads-world.ts';

const diagrams = loadDiagrams(join(packageRoot(), 'machines/discovery/sequences')).filter(({ file }) =>
  /\/(ads|make-before-break)\.mmd$/.test(file),
);

/** Checks after each test that no chart failed and the trace conforms to the diagrams. */
afterEach(() => {
  for (const world of AdsWorld.instances.splice(0)) {
    expect(world.failure).toBeUndefined();
    const report = checkTrace(diagrams, world.records);
    expect(report.departures, formatReport(report, diagrams)).toEqual([]);
  }
});

describe.each([
  ['state of the world', false],
  ['delta', true],
])('%s', (_, delta) => {
  const clusters = (...names: string[]): string => `Cluster ${names.join(' ')}`;
  /** In state of the world, a response contains all clusters. */
  const withA = (name: string): string => (delta ? clusters(name) : clusters('a', name));

  test("a route to a new cluster is sent directly after the response with the cluster's endpoints", () => {
    const client = acknowledgedClient(delta);
    moveRoute(client);
    expect(client.read()).toEqual([withA('b')]);
    expect(client.world.watch(routeType)?.awaits).toEqual(['b']);
    expect(client.world.awaitsClusters).toBe(true);
    expect(shortTexts(client.requestEndpoints('b'))).toMatch(/^ClusterLoadAssignment .*b/);
    expect(client.read()).toEqual(['RouteConfiguration r']);
    expect(client.world.watch(routeType)?.awaits).toBeUndefined();
    expect(client.world.awaitsClusters).toBe(false);
  });

  test('a route to a cluster that warms up in another way is sent only when clusters are acknowledged', () => {
    const client = acknowledgedClient(delta);
    client.source.usability.set('b', { usableAfter: 'warming', assignment: 'b', secrets: new Set() });
    moveRoute(client);
    const sentResponse = client.world.read()!;
    client.requestEndpoints('b');
    expect(client.read()).toEqual([]);
    client.ack(sentResponse);
    expect(client.read()).toEqual(['RouteConfiguration r']);
  });

  test('a route to an immediately usable cluster is sent directly after the cluster', () => {
    const client = acknowledgedClient(delta);
    client.source.usability.set('b', { usableAfter: 'at once', assignment: 'b', secrets: new Set() });
    moveRoute(client);
    expect(client.read()).toEqual([withA('b'), 'RouteConfiguration r']);
  });

  test('a cluster whose secret no other cluster has fetched is usable only when clusters are acknowledged', () => {
    const secrets = new Set(['default']);
    const client = acknowledgedClient(delta);
    client.source.usability.set('b', { usableAfter: 'assignment', assignment: 'b', secrets });
    moveRoute(client);
    const sentResponse = client.world.read()!;
    client.requestEndpoints('b');
    expect(client.read()).toEqual([]);
    client.ack(sentResponse);
    expect(client.read()).toEqual(['RouteConfiguration r']);
    const other = acknowledgedClient(delta);
    for (const name of ['a', 'b'])
      other.source.usability.set(name, { usableAfter: 'assignment', assignment: name, secrets });
    moveRoute(other);
    other.world.read();
    other.requestEndpoints('b');
    expect(other.read()).toEqual(['RouteConfiguration r']);
  });

  test('a new listener and its routes wait, whether they are pushed or requested', () => {
    const client = acknowledgedClient(delta);
    client.source.setNaming(listenerType, 'l', 'a');
    client.request(listenerType);
    client.ack(client.world.read()!);
    client.source.set(clusterType, 'b');
    client.source.set(endpointType, 'b');
    client.source.setNaming(listenerType, 'l', 'b');
    client.source.setNaming(routeType, 's', 'b');
    client.world.push(clusterType, endpointType, listenerType);
    expect(client.read()).toEqual([withA('b')]);
    if (delta) client.request(routeType, ['s']);
    else client.request(routeType, ['r', 's'], client.world.watch(routeType)!.nonceSent);
    expect(client.read()).toEqual([]);
    client.requestEndpoints('b');
    expect(client.read().sort()).toEqual(['Listener l', 'RouteConfiguration s']);
  });

  test('resources that name no new cluster are sent immediately', () => {
    const client = acknowledgedClient(delta);
    client.source.setNaming(routeType, 's', 'a');
    client.request(routeType, ['r', 's'], client.world.watch(routeType)!.nonceSent);
    client.ack(client.world.read()!, ['r', 's']);
    client.source.setNaming(routeType, 's', 'a');
    moveRoute(client);
    expect(client.read()).toEqual([withA('b'), 'RouteConfiguration s']);
    client.requestEndpoints('b');
    // The previous route must be acknowledged first: one response per type is pending at a time.
    expect(client.read()).toEqual([]);
  });

  test('a route to a cluster that is not configured does not wait', () => {
    const client = acknowledgedClient(delta);
    client.source.setNaming(routeType, 'r', 'nowhere');
    client.world.push(routeType);
    expect(client.read()).toEqual(['RouteConfiguration r']);
  });

  test('held-back routes are sent after the limit, even if their cluster is unusable, and this is reported', () => {
    const client = acknowledgedClient(delta);
    moveRoute(client);
    client.read();
    client.world.clock.advance(4_999);
    expect(client.read()).toEqual([]);
    client.world.clock.advance(1);
    expect(client.read()).toEqual(['RouteConfiguration r', withA('b')]);
    expect(JSON.stringify(client.world.records)).toContain('"clusters.abandoned"');
    expect(client.world.awaitsClusters).toBe(false);
  });

  test('a rejection ends the wait for clusters that it does not name, while the others wait until the limit', () => {
    const client = acknowledgedClient(delta);
    for (const name of ['b', 'c']) {
      client.source.usability.set(name, { usableAfter: 'warming', assignment: name, secrets: new Set() });
      client.source.set(clusterType, name);
    }
    client.source.setNaming(routeType, 'r', 'b');
    client.source.setNaming(routeType, 's', 'c');
    client.request(routeType, ['r', 's'], client.world.watch(routeType)!.nonceSent);
    client.world.push(clusterType);
    const sentResponse = client.world.readAll().find(({ typeUrl }) => typeUrl === clusterType)!;
    client.ack(sentResponse, [], 'Error adding/updating cluster(s) b: malformed IP address: x, y');
    client.world.push(routeType);
    expect(client.read()).toEqual(['RouteConfiguration s']);
  });

  test('a newer change does not delay a held-back resource, and is sent after it', () => {
    const client = acknowledgedClient(delta);
    moveRoute(client);
    const first = client.world.read()!;
    client.source.set(clusterType, 'c');
    client.source.set(endpointType, 'c');
    client.source.setNaming(routeType, 'r', 'c');
    client.world.push(clusterType, endpointType, routeType);
    expect(client.read()).toEqual([]);
    client.ack(client.requestEndpoints('b'), ['a', 'b']);
    const [routes] = client.world.readAll();
    expect(shortTexts(routes!)).toBe('RouteConfiguration r');
    client.ack(first);
    expect(client.read()).toEqual([delta ? clusters('c') : clusters('a', 'b', 'c')]);
    client.ack(routes!, ['r']);
    client.ack(client.requestEndpoints('c'), ['a', 'b', 'c']);
    expect(client.read()).toEqual(['RouteConfiguration r']);
  });

  test('an unconfigured cluster is removed 10 s after the client acknowledges routes without it', () => {
    const client = acknowledgedClient(delta);
    const removal = delta ? 'Cluster -a' : 'Cluster b';
    moveRoute(client);
    client.source.remove(clusterType, 'a');
    client.source.remove(endpointType, 'a');
    client.world.push(clusterType, endpointType, routeType);
    expect(client.take()).toEqual([withA('b'), 'RouteConfiguration r']);
    client.world.clock.advance(9_999);
    expect(client.read()).toEqual([]);
    client.world.clock.advance(1);
    // Endpoints are not compared: those of cluster a are removed at the same time.
    expect(client.read().filter((text) => !text.startsWith('ClusterLoad'))).toEqual([removal]);
    expect(JSON.stringify(client.world.records)).toContain('"clusters.removed"');
  });

  test('an unconfigured cluster keeps its endpoints unchanged until it is removed', () => {
    const client = acknowledgedClient(delta);
    client.source.remove(clusterType, 'a');
    // As in the generators: an unknown name has no endpoints.
    client.source.set(endpointType, 'a');
    client.world.push(clusterType, endpointType);
    expect(client.read()).toEqual([]);
  });

  test('a cluster that is configured again is not removed', () => {
    const client = acknowledgedClient(delta);
    client.source.remove(clusterType, 'a');
    client.world.push(clusterType);
    client.source.set(clusterType, 'a');
    client.world.push(clusterType);
    expect(client.take()).toEqual(['Cluster a', 'ClusterLoadAssignment a']);
    client.world.clock.advance(100_000);
    expect(client.take()).toEqual([]);
  });

  test("a replaced listener's cluster is removed after the connections have drained", () => {
    const client = acknowledgedClient(delta);
    client.source.set(clusterType, 'b');
    client.source.usability.set('b', { usableAfter: 'at once', assignment: 'b', secrets: new Set() });
    client.source.setNaming(listenerType, 'l', 'b');
    client.world.push(clusterType);
    client.take();
    client.request(listenerType);
    client.take();
    client.source.setNaming(listenerType, 'l', 'a');
    client.source.remove(clusterType, 'b');
    client.world.push(clusterType, listenerType);
    expect(client.take()).toEqual(['Listener l']);
    // The new listener may wait 15 s for a certificate before it replaces the old one.
    client.world.clock.advance(69_999);
    expect(client.read()).toEqual([]);
    client.world.clock.advance(1);
    expect(client.read()).toEqual([delta ? 'Cluster -b' : 'Cluster a']);
  });

  test('a rejection of routes preserves the clusters of the previous routes', () => {
    const client = acknowledgedClient(delta);
    moveRoute(client);
    client.source.remove(clusterType, 'a');
    client.world.push(clusterType, routeType);
    client.ack(client.world.read()!);
    client.ack(client.world.read()!, ['r'], 'no');
    client.world.clock.advance(200_000);
    expect(client.take()).toEqual([]);
  });

  test('endpoints of a cluster that is updated in place are sent without a request while other clusters wait', () => {
    const client = acknowledgedClient(delta);
    client.source.set(clusterType, 'a');
    client.world.push(clusterType);
    expect(client.read()).toEqual(['Cluster a', 'ClusterLoadAssignment a']);
  });

  test('endpoints that a new cluster shares with another one are sent without a request, followed by routes to the new cluster', () => {
    const client = acknowledgedClient(delta);
    client.source.usability.set('b', { usableAfter: 'assignment', assignment: 'a', secrets: new Set() });
    client.source.set(clusterType, 'b');
    client.source.setNaming(routeType, 'r', 'b');
    client.world.push(clusterType, routeType);
    expect(client.read()).toEqual([withA('b'), 'ClusterLoadAssignment a', 'RouteConfiguration r']);
  });

  test('a client that reconnects receives routes when it has acknowledged clusters', () => {
    const first = acknowledgedClient(delta);
    const { source, world } = first;
    const secondClient = new RolloutClient(delta, { source, clock: world.clock });
    source.set(clusterType, 'b');
    source.set(endpointType, 'b');
    source.setNaming(routeType, 'r', 'b');
    const [a] = [...source.contentsOf(clusterType).values()].map((content) => content.split('='));
    if (delta) {
      const initialResourceVersions = { [a![0]!]: a![1]! };
      secondClient.world.sendDelta({ typeUrl: clusterType, initialResourceVersions });
      secondClient.world.sendDelta({
        typeUrl: routeType,
        resourceNamesSubscribe: ['r'],
        initialResourceVersions: { r: 'old' },
      });
    } else {
      secondClient.world.sendSotw({ typeUrl: clusterType, versionInfo: 'v' });
      secondClient.world.sendSotw({ typeUrl: routeType, versionInfo: 'v', resourceNames: ['r'] });
    }
    const clusters = secondClient.world.readAll();
    expect(clusters.map(({ typeUrl }) => typeUrl)).toEqual([clusterType]);
    secondClient.ack(clusters[0]!);
    expect(secondClient.read()).toEqual(['RouteConfiguration r']);
  });

  test('a client that subscribes only to endpoints while a cluster warms up receives endpoints first and routes later', () => {
    const client = new RolloutClient(delta);
    client.source.set(clusterType, 'a');
    client.source.set(endpointType, 'a');
    client.source.setNaming(routeType, 'r', 'a');
    expect(shortTexts(client.requestEndpoints('a'))).toBe('ClusterLoadAssignment a');
    if (delta) {
      const initialResourceVersions = { r: 'old' };
      client.world.sendDelta({ typeUrl: routeType, resourceNamesSubscribe: ['r'], initialResourceVersions });
    } else client.world.sendSotw({ typeUrl: routeType, versionInfo: 'v', resourceNames: ['r'] });
    expect(client.read()).toEqual([]);
    if (delta) client.world.sendDelta({ typeUrl: clusterType, initialResourceVersions: { a: '1' } });
    else client.world.sendSotw({ typeUrl: clusterType, versionInfo: 'v' });
    for (const response of client.world.readAll()) if (response.typeUrl === clusterType) client.ack(response);
    client.world.clock.advance(0);
    expect([...client.read(), client.world.watch(routeType)?.nonceSent !== '']).toContain(true);
  });

  test('the first clusters of a client delay no other resources', () => {
    const client = new RolloutClient(delta);
    client.source.set(clusterType, 'a');
    client.source.setNaming(routeType, 'r', 'a');
    client.request(clusterType);
    client.request(routeType, ['r']);
    expect(client.read()).toEqual(['Cluster a', 'RouteConfiguration r']);
  });

  test('a client that subscribes to clusters by name receives routes immediately', () => {
    const client = new RolloutClient(delta);
    client.source.set(clusterType, 'a');
    client.source.setNaming(routeType, 'r', 'a');
    client.request(routeType, ['r']);
    client.request(clusterType, ['a']);
    for (const response of client.world.readAll()) client.ack(response, response.typeUrl === routeType ? ['r'] : ['a']);
    client.source.set(clusterType, 'b');
    client.source.setNaming(routeType, 'r', 'b');
    client.world.push(clusterType, routeType);
    expect(client.read()).toEqual(['RouteConfiguration r']);
  });
});

// A state-of-the-world client that subscribes again is sent the newest state, and no change is due after that.
test('a held-back route is sent when it is ready even if a newer one exists, which follows in state of the world', () => {
  const client = acknowledgedClient(false);
  const { source, world } = client;
  const first = source.contentsOf(routeType).get('r');
  moveRoute(client);
  const secondRoute = source.contentsOf(routeType).get('r');
  const response = world.read()!;
  source.set(clusterType, 'c');
  source.set(endpointType, 'c');
  source.setNaming(routeType, 'r', 'c');
  world.push(clusterType, endpointType, routeType);
  client.request(routeType, ['r']);
  // The client receives the current content.
  const newerResponse = world.read()!;
  expect(newerResponse.resources.get('r')).toBe(first);
  client.ack(newerResponse, ['r']);
  client.ack(client.requestEndpoints('b'), ['a', 'b']);
  const olderResponse = world.read()!;
  expect(olderResponse.resources.get('r')).toBe(secondRoute);
  client.ack(olderResponse, ['r']);
  client.ack(response);
  expect(shortTexts(world.read()!)).toBe('Cluster a b c');
  client.requestEndpoints('c');
  const routes = world.readAll().filter(({ typeUrl }) => typeUrl === routeType);
  expect(routes.map(({ resources }) => resources.get('r'))).toEqual([source.contentsOf(routeType).get('r')]);
});
