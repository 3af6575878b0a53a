/** The ads-connection chart with its real stream effect, without a network. Rows are numbers of edge cases (edge-cases.test.ts). */
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import type { AnyStateNode } from 'xstate';
import { adsConnectionMachine } from '../../machines/discovery/xds/ads-connection.machine.ts';
import { adsCatalogue } from '../../machines/discovery/xds/ads-protocol.ts';
import {
  clusterType,
  endpointType,
  healthType,
  listenerType,
  routeType,
} from '../../machines/discovery/xds/ads-types.ts';
import { checkTrace } from '../../src/debugger/check/check.ts';
import { formatReport } from '../../src/debugger/check/check-report-text.ts';
import { loadDiagrams } from '../../src/debugger/diagram/load.ts';
import type { OneShotResponse } from '../../src/discovery/xds/one-shot.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { AdsWorld, type AdsWorldOptions, type ClientResponse } from '../simulation/ads-world.ts';
import { replayDifference } from '../simulation/replayed.ts';

const diagrams = ['ads', 'make-before-break'].flatMap((name) =>
  loadDiagrams(join(packageRoot(), `machines/discovery/sequences/${name}.mmd`)),
);

/** After each test, its trace conforms to the diagram and can be replayed, no chart failed, and the context is plain data. */
afterEach(() => {
  for (const world of AdsWorld.instances.splice(0)) {
    expect(world.failure).toBeUndefined();
    const { context } = world.actor.getSnapshot();
    expect(JSON.parse(JSON.stringify(context))).toEqual(context);
    const report = checkTrace(diagrams, world.records);
    expect(report.departures, formatReport(report, diagrams)).toEqual([]);
    expect(replayDifference(world.records, adsConnectionMachine)).toBe('');
  }
});

const debugType = 'istio.io/debug/syncz';
const namesOf = (sentResponse: ClientResponse | undefined): string[] =>
  [...(sentResponse?.resources.keys() ?? [])].sort();
const describeResponse = (sentResponse: ClientResponse): string =>
  `${sentResponse.typeUrl.split('.').at(-1)} ${namesOf(sentResponse).join(' ')}`.trim();

function ackSotw(world: AdsWorld, sentResponse: ClientResponse, resourceNames: string[]): void {
  world.sendSotw({
    typeUrl: sentResponse.typeUrl,
    versionInfo: sentResponse.version,
    responseNonce: sentResponse.nonce,
    resourceNames,
  });
}

function ackDelta(world: AdsWorld, { typeUrl, nonce: responseNonce }: ClientResponse): void {
  world.sendDelta({ typeUrl, responseNonce });
}

/** A source with clusters a and b and their endpoints, and a client that has sent nothing yet. */
function meshWorld(options: AdsWorldOptions = {}): AdsWorld {
  const world = new AdsWorld(options);
  for (const type of [clusterType, endpointType]) for (const name of ['a', 'b']) world.source.set(type, name);
  return world;
}

describe("a client's node", () => {
  test('is taken from the first request', () => {
    const world = meshWorld();
    expect(world.state()).toBe('awaiting node');
    world.sendSotw({ typeUrl: clusterType });
    expect(world.state()).toBe('streaming.delivery.up to date');
    expect(world.source.nodes.map(({ id }) => id)).toEqual(['sidecar~10.0.0.1~a.b~b.svc']);
    expect(namesOf(world.read())).toEqual(['a', 'b']);
  });

  test('must be sent within 10 s, or the stream ends', () => {
    const world = new AdsWorld();
    expect(world.state()).toBe('awaiting node');
    world.clock.advance(9_999);
    expect(world.state()).toBe('awaiting node');
    world.clock.advance(1);
    expect(world.state()).toMatch(/^clos/);
  });

  test('is required, and a request without it ends the stream with INVALID_ARGUMENT', () => {
    const world = meshWorld({ node: '' });
    world.sendSotw({ typeUrl: clusterType });
    expect(world.call.status).toMatchObject({
      code: 3,
      details: expect.stringMatching(/^missing node .*\[NODE_INVALID\]$/),
    });
    expect(world.state()).toBe('closed');
  });

  test('ends the stream with INVALID_ARGUMENT and the reason if it is rejected', () => {
    const world = meshWorld();
    world.source.nodeRejection = 'node id has 2 parts, not 4';
    world.sendSotw({ typeUrl: clusterType });
    expect(world.call.status).toEqual({ code: 3, details: 'node id has 2 parts, not 4 [NODE_INVALID]' });
  });

  test('is accepted after a health report, which gets no response', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: healthType, node: { id: '' } });
    expect(world.state()).toBe('awaiting node');
    world.sendSotw({ typeUrl: clusterType, node: { id: 'late' } });
    expect(world.state()).toBe('streaming.delivery.up to date');
    world.sendSotw({ typeUrl: healthType });
    expect(world.readAll().map(({ typeUrl }) => typeUrl)).toEqual([clusterType]);
  });
});

describe('an invalid or unknown request', () => {
  test('ends the stream with a reason if it cannot be decoded', () => {
    const world = meshWorld();
    world.sendBytes(Buffer.from([0xff, 0xff, 0xff]));
    expect(world.call.status).toMatchObject({ code: 3, details: expect.stringContaining('[XDS_REQUEST_INVALID]') });
  });

  test('ends an aggregated stream if it has no type', () => {
    const world = meshWorld();
    world.sendSotw({});
    expect(world.call.status).toMatchObject({ code: 3, details: expect.stringContaining('missing type_url') });
  });

  test("ends a stream of a single-type service if its type differs from the method's", () => {
    const world = meshWorld({ onlyType: clusterType });
    world.sendSotw({});
    expect(describeResponse(world.read()!)).toBe('Cluster a b');
    world.sendSotw({ typeUrl: endpointType, resourceNames: ['a'] });
    expect(world.call.status).toMatchObject({ code: 3, details: expect.stringContaining(endpointType) });
  });

  test('gets no response if its type is unknown, and the stream stays open (row 12)', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: 'nobody.makes/This' });
    expect(world.pendingWriteCount).toBe(0);
    expect(world.state()).toBe('streaming.delivery.up to date');
  });

  test('gets no response while its resources cannot be generated, so that the client keeps its resources', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: clusterType });
    ackSotw(world, world.read()!, []);
    world.source.getError = new Error('a generator is broken');
    world.push(clusterType);
    expect(world.pendingWriteCount).toBe(0);
    world.source.getError = undefined;
    world.source.set(clusterType, 'c');
    world.push(clusterType);
    expect(namesOf(world.read())).toEqual(['a', 'b', 'c']);
  });
});

describe('a state-of-the-world stream', () => {
  test('counts a rejection and records its reason (row 3)', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: clusterType });
    const { nonce } = world.read()!;
    world.sendSotw({
      typeUrl: clusterType,
      responseNonce: nonce,
      errorDetail: { code: 13, message: 'no such filter' },
    });
    expect(world.judgedEvents).toEqual([`rejected ${clusterType} no such filter`]);
    expect(world.watch(clusterType)).toMatchObject({
      lastError: 'no such filter',
      nonceAcked: '',
      nonceRejected: nonce,
    });
    expect(world.pendingWriteCount).toBe(0);
  });

  test('counts and ignores a late ACK (row 5)', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: endpointType, resourceNames: ['a'] });
    const first = world.read()!;
    ackSotw(world, first, ['a']);
    world.source.set(endpointType, 'a');
    world.push(endpointType);
    ackSotw(world, first, ['a']);
    expect(world.judgedEvents).toEqual([`stale ${endpointType}`]);
  });

  test('sends only changed endpoints, and no other types (row 15)', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: clusterType });
    ackSotw(world, world.read()!, []);
    world.sendSotw({ typeUrl: endpointType, resourceNames: ['a', 'b'] });
    ackSotw(world, world.read()!, ['a', 'b']);
    world.source.set(endpointType, 'b');
    world.push();
    expect(world.readAll().map(describeResponse)).toEqual(['ClusterLoadAssignment b']);
  });

  test('does not push unchanged resources (row 18)', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: clusterType });
    ackSotw(world, world.read()!, []);
    world.push();
    expect(world.pendingWriteCount).toBe(0);
  });

  test('sends all clusters except removed ones when one changes', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: clusterType });
    ackSotw(world, world.read()!, []);
    world.source.remove(clusterType, 'a');
    world.push();
    expect(namesOf(world.read())).toEqual(['b']);
  });

  test('sends the unchanged endpoints of a changed cluster after the cluster', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: clusterType });
    ackSotw(world, world.read()!, []);
    world.sendSotw({ typeUrl: endpointType, resourceNames: ['a', 'b'] });
    ackSotw(world, world.read()!, ['a', 'b']);
    world.source.set(clusterType, 'b');
    world.push(clusterType);
    expect(world.readAll().map(describeResponse)).toEqual(['Cluster a b', 'ClusterLoadAssignment b']);
  });

  test('sends endpoints once if they and their cluster change', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: clusterType });
    ackSotw(world, world.read()!, []);
    world.sendSotw({ typeUrl: endpointType, resourceNames: ['a', 'b'] });
    ackSotw(world, world.read()!, ['a', 'b']);
    world.source.set(clusterType, 'b');
    world.source.set(endpointType, 'b');
    world.push();
    const [clusters, endpoints, ...otherResponses] = world.readAll();
    expect([describeResponse(clusters!), describeResponse(endpoints!), otherResponses]).toEqual([
      'Cluster a b',
      'ClusterLoadAssignment b',
      [],
    ]);
    ackSotw(world, clusters!, []);
    ackSotw(world, endpoints!, ['a', 'b']);
    expect(world.pendingWriteCount).toBe(0);
  });
});

describe('a delta stream', () => {
  test('sends endpoints again after their clusters if the endpoints were requested first (row 10)', () => {
    const world = meshWorld({ isDelta: true });
    world.sendDelta({ typeUrl: endpointType, resourceNamesSubscribe: ['a', 'b'] });
    ackDelta(world, world.read()!);
    world.sendDelta({ typeUrl: clusterType });
    expect(world.readAll().map(describeResponse)).toEqual(['Cluster a b', 'ClusterLoadAssignment a b']);
  });

  test('lists removed resources by name (row 20)', () => {
    const world = meshWorld({ isDelta: true });
    world.sendDelta({ typeUrl: clusterType });
    ackDelta(world, world.read()!);
    world.source.remove(clusterType, 'a');
    world.source.set(clusterType, 'c');
    world.push();
    const sentResponse = world.read()!;
    expect([namesOf(sentResponse), sentResponse.removedNames]).toEqual([['c'], ['a']]);
  });

  test('reports a missing resource as removed immediately, and sends it when it exists', () => {
    const world = meshWorld({ isDelta: true });
    world.sendDelta({ typeUrl: endpointType, resourceNamesSubscribe: ['a', 'x'] });
    const sentResponse = world.read()!;
    expect([namesOf(sentResponse), sentResponse.removedNames]).toEqual([['a'], ['x']]);
    ackDelta(world, sentResponse);
    world.source.set(endpointType, 'x');
    world.push();
    expect(namesOf(world.read())).toEqual(['x']);
  });

  test('reports a resource from another server as removed if it does not exist', () => {
    const world = meshWorld({ isDelta: true });
    world.sendDelta({ typeUrl: clusterType, initialResourceVersions: { a: 'another', old: '1' } });
    const sentResponse = world.read()!;
    expect([namesOf(sentResponse), sentResponse.removedNames]).toEqual([['a', 'b'], ['old']]);
  });

  /** The versions that a client has after receiving everything from the source so far. */
  const versionsOf = (world: AdsWorld, typeUrl: string): Record<string, string> =>
    Object.fromEntries([...world.source.types.get(typeUrl)!.values()].map(({ name, version }) => [name, version]));

  test.each([clusterType, endpointType, listenerType, routeType])(
    'sends only changed and removed resources to a reconnecting client: %s',
    (typeUrl) => {
      const world = meshWorld({ isDelta: true });
      for (const name of ['a', 'b', 'c']) world.source.set(typeUrl, name);
      const heldVersions = { ...versionsOf(world, typeUrl), gone: '1' };
      world.source.set(typeUrl, 'b');
      world.source.set(typeUrl, 'd');
      const isNamed = typeUrl === endpointType || typeUrl === routeType;
      if (isNamed) {
        world.sendDelta({ typeUrl: clusterType, initialResourceVersions: versionsOf(world, clusterType) });
        ackDelta(world, world.read()!);
      }
      const names = ['a', 'b', 'c', 'd', 'never'];
      const subscription = isNamed ? { resourceNamesSubscribe: names } : {};
      world.sendDelta({ typeUrl, initialResourceVersions: heldVersions, ...subscription });
      const sentResponse = world.read()!;
      expect([namesOf(sentResponse), sentResponse.removedNames]).toEqual([
        ['b', 'd'],
        isNamed ? ['gone', 'never'] : ['gone'],
      ]);
      ackDelta(world, sentResponse);
      // After this exchange, the client has the current state.
      world.push();
      expect(world.pendingWriteCount).toBe(0);
      world.source.set(typeUrl, 'a');
      world.push();
      expect(namesOf(world.read())).toEqual(['a']);
    },
  );

  test('sends an empty response to a reconnecting client with current resources', () => {
    const world = meshWorld({ isDelta: true });
    for (const typeUrl of [clusterType, endpointType]) {
      const heldVersions = versionsOf(world, typeUrl);
      world.sendDelta({
        typeUrl,
        initialResourceVersions: heldVersions,
        resourceNamesSubscribe: ['*', ...Object.keys(heldVersions)],
      });
    }
    const sentResponses = world.readAll();
    expect(sentResponses.map(({ resources, removedNames }) => [resources.size, removedNames.length])).toEqual([
      [0, 0],
      [0, 0],
    ]);
    for (const response of sentResponses) ackDelta(world, response);
    expect(world.watch(endpointType)).toMatchObject({
      nonceAcked: sentResponses[1]!.nonce,
      versionAcked: sentResponses[1]!.version,
    });
  });

  test('sends the unchanged endpoints of a cluster that changed while the client was disconnected', () => {
    const world = meshWorld({ isDelta: true });
    const [clusters, endpoints] = [versionsOf(world, clusterType), versionsOf(world, endpointType)];
    world.source.set(clusterType, 'b');
    world.sendDelta({ typeUrl: clusterType, initialResourceVersions: clusters });
    world.sendDelta({
      typeUrl: endpointType,
      initialResourceVersions: endpoints,
      resourceNamesSubscribe: Object.keys(endpoints),
    });
    expect(world.readAll().map(describeResponse)).toEqual(['Cluster b', 'ClusterLoadAssignment b']);
  });

  test('sends endpoints again to a client that waits for them without subscribing to clusters', () => {
    const world = meshWorld({ isDelta: true });
    const heldVersions = versionsOf(world, endpointType);
    world.sendDelta({
      typeUrl: endpointType,
      initialResourceVersions: heldVersions,
      resourceNamesSubscribe: Object.keys(heldVersions),
    });
    expect(describeResponse(world.read()!)).toBe('ClusterLoadAssignment a b');
    const bareWorld = new AdsWorld({ isDelta: true, resendsEndpoints: false });
    for (const name of ['a', 'b']) bareWorld.source.set(endpointType, name);
    bareWorld.sendDelta({ typeUrl: endpointType, initialResourceVersions: versionsOf(bareWorld, endpointType) });
    expect(namesOf(bareWorld.read())).toEqual([]);
  });

  test('uses only the resource versions in the first request for a type on the stream', () => {
    const world = meshWorld({ isDelta: true });
    world.sendDelta({ typeUrl: clusterType });
    ackDelta(world, world.read()!);
    world.source.set(clusterType, 'a');
    world.sendDelta({ typeUrl: clusterType, initialResourceVersions: versionsOf(world, clusterType) });
    world.push();
    expect(namesOf(world.read())).toEqual(['a']);
  });

  test('does not send an unsubscribed resource again, or its removal', () => {
    const world = meshWorld({ isDelta: true });
    world.sendDelta({ typeUrl: endpointType, resourceNamesSubscribe: ['a', 'b'] });
    ackDelta(world, world.read()!);
    world.sendDelta({ typeUrl: endpointType, resourceNamesUnsubscribe: ['a'] });
    world.source.set(endpointType, 'a');
    world.push();
    world.source.remove(endpointType, 'a');
    world.push();
    expect(world.pendingWriteCount).toBe(0);
  });

  test('sends a change that occurs during a subscription request', () => {
    const world = meshWorld({ isDelta: true });
    world.sendDelta({ typeUrl: endpointType, resourceNamesSubscribe: ['a'] });
    ackDelta(world, world.read()!);
    world.source.set(endpointType, 'a');
    world.sendDelta({ typeUrl: endpointType, resourceNamesSubscribe: ['b'] });
    const sentResponse = world.read()!;
    expect(namesOf(sentResponse)).toEqual(['b']);
    ackDelta(world, sentResponse);
    world.push();
    expect(namesOf(world.read())).toEqual(['a']);
  });
});

describe('a client that sends no ACK', () => {
  test('receives changes after the ACK timeout, which also applies to the next response', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: clusterType });
    world.read();
    world.source.set(clusterType, 'c');
    world.push();
    expect(world.state()).toBe('streaming.delivery.awaiting acknowledgement');
    world.clock.advance(9_999);
    expect(world.pendingWriteCount).toBe(0);
    world.clock.advance(1);
    expect(namesOf(world.read())).toEqual(['a', 'b', 'c']);
    expect(world.state()).toBe('streaming.delivery.up to date');
    world.source.set(clusterType, 'd');
    world.push();
    expect(world.pendingWriteCount).toBe(0);
  });

  test('has a late ACK accepted', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: clusterType });
    const first = world.read()!;
    world.push(clusterType);
    world.clock.advance(10_000);
    ackSotw(world, first, []);
    expect(world.watch(clusterType)).toMatchObject({ nonceAcked: first.nonce });
    expect(world.pendingWriteCount).toBe(0);
  });

  test('starts no timer while no response is pending', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: clusterType });
    expect(world.clock.pendingDelays()).toEqual([]);
    world.source.set(clusterType, 'c');
    world.push();
    ackSotw(world, world.read()!, []);
    expect(world.clock.pendingDelays()).toEqual([]);
  });
});

describe('a client that does not read', () => {
  test('has its requests left unread while a response waits, until it reads that response', () => {
    const world = meshWorld();
    world.source.set(clusterType, 'big', 100_000);
    world.sendSotw({ typeUrl: clusterType });
    for (const type of [listenerType, routeType, endpointType]) {
      world.source.set(type, 'a');
      world.sendSotw({ typeUrl: type, resourceNames: ['a'] });
      world.sendSotw({ typeUrl: type, resourceNames: ['a'] });
    }
    expect(world.state()).toBe('streaming.delivery.congested');
    expect([world.pendingWriteCount, world.call.unreadCount]).toEqual([1, 5]);
    const sentResponses = world.readAll();
    const repeatedTypes = [listenerType, routeType, endpointType].flatMap((type) => [type, type]);
    expect(sentResponses.map(({ typeUrl }) => typeUrl)).toEqual([clusterType, ...repeatedTypes]);
    expect(world.state()).toBe('streaming.delivery.up to date');
    expect(world.call.unreadCount).toBe(0);
  });

  test('receives the state from the time when its response was ordered', () => {
    const world = meshWorld();
    world.source.set(clusterType, 'big', 100_000);
    world.sendSotw({ typeUrl: clusterType });
    world.source.set(routeType, 'a');
    const orderedVersion = `v${world.source.version}`;
    world.sendSotw({ typeUrl: routeType, resourceNames: ['a'] });
    world.source.set(routeType, 'a');
    expect(world.readAll()[1]?.version).toBe(orderedVersion);
  });

  test('is disconnected after its read timeout', () => {
    const world = meshWorld({ limits: { congestionMs: 60_000 } });
    world.source.set(clusterType, 'big', 100_000);
    world.sendSotw({ typeUrl: clusterType });
    world.sendSotw({ typeUrl: endpointType, resourceNames: ['a'] });
    world.clock.advance(59_999);
    expect(world.state()).toBe('streaming.delivery.congested');
    world.clock.advance(1);
    expect(world.call.status).toEqual({ code: 8, details: 'the client does not read responses [STREAM_TIMEOUT]' });
  });
});

describe('the end of a stream', () => {
  test('has status OK after the client half-closes', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: clusterType });
    world.call.emit('end');
    expect(world.call.status).toEqual({ code: 0, details: '' });
    expect(world.state()).toBe('closed');
    expect(world.source.nodes).toEqual([]);
  });

  test('waits after a half-close for a one-time response, and is UNAVAILABLE if it is not complete within 5 s', () => {
    const world = meshWorld({ oneShot: () => new Promise(() => {}) });
    world.sendSotw({ typeUrl: debugType });
    world.call.emit('end');
    expect(world.state()).toBe('half-closed');
    world.drain(10_000);
    world.clock.advance(4_999);
    expect(world.call.status).toBeUndefined();
    world.clock.advance(1);
    expect(world.call.status).toEqual({ code: 14, details: 'a response was not complete in time [STREAM_TIMEOUT]' });
  });

  test('waits after a half-close for responses that wait until earlier ones are written', () => {
    const world = meshWorld();
    world.source.set(clusterType, 'big', 100_000);
    world.sendSotw({ typeUrl: clusterType });
    world.sendSotw({ typeUrl: endpointType, resourceNames: ['a'] });
    world.call.emit('end');
    expect(world.state()).toBe('half-closed');
    expect(world.readAll().map(({ typeUrl }) => typeUrl)).toEqual([clusterType, endpointType]);
    expect(world.call.status).toEqual({ code: 0, details: '' });
  });

  test('waits after a half-close for resources that wait for the ACK of a cluster', () => {
    const world = meshWorld({ hasMakeBeforeBreak: true });
    world.source.usability.set('new', { usableAfter: 'warming', assignment: 'new', secrets: new Set() });
    world.source.setNaming(listenerType, 'l', 'a');
    for (const typeUrl of [clusterType, listenerType]) {
      world.sendSotw({ typeUrl });
      for (const sentResponse of world.readAll()) ackSotw(world, sentResponse, []);
    }
    world.source.set(clusterType, 'new');
    world.source.setNaming(listenerType, 'l', 'new');
    world.push();
    expect(world.readAll().map(describeResponse)).toEqual(['Cluster a b new']);
    expect(world.awaitsClusters).toBe(true);
    world.call.emit('end');
    expect(world.readAll().map(describeResponse)).toEqual(['Listener l']);
    expect(world.call.status).toEqual({ code: 0, details: '' });
  });

  test('waits in a drain for one-time responses, and reports their denial', async () => {
    const results: ((result: OneShotResponse) => void)[] = [];
    const oneShot = () => new Promise<OneShotResponse>((resolve) => results.push(resolve));
    const worlds = ['responds', 'is denied', 'has half-closed'].map(() => meshWorld({ oneShot }));
    for (const [index, world] of worlds.entries()) {
      world.sendSotw({ typeUrl: debugType });
      world.drain(10_000);
      if (index === 2) world.call.emit('end');
      expect(world.state()).toBe('draining');
    }
    const response = { version: 'v', resources: [] };
    const outcomes = [response, { code: 'PERMISSION_DENIED', reason: 'not for you' } as const, response];
    for (const [index, resolve] of results.entries()) resolve(outcomes[index]!);
    await new Promise((resolve) => setImmediate(resolve));
    expect(worlds.map(({ pendingWriteCount }) => pendingWriteCount)).toEqual([1, 0, 1]);
    expect(worlds.map(({ call }) => call.status?.code)).toEqual([0, 7, 0]);
  });

  test.each<[string, (world: AdsWorld) => void, number]>([
    ['without a type', (world) => world.sendSotw({}), 3],
    ['that is malformed', (world) => world.sendBytes(Buffer.from([0xff, 0xff])), 3],
    ['for too many names', (world) => world.sendSotw({ typeUrl: endpointType, resourceNames: ['a', 'b', 'c'] }), 8],
  ])('is the same with and without a drain after a request %s', (_, act, code) => {
    const statuses = [0, 1].map((isDraining) => {
      const world = meshWorld({ limits: { maxNames: 2 } });
      world.sendSotw({ typeUrl: clusterType });
      if (isDraining === 1) world.drain(10_000);
      act(world);
      return world.call.status;
    });
    expect(statuses[1]).toEqual(statuses[0]);
    expect(statuses[1]).toMatchObject({ code });
  });

  test('has status OK if the client half-closes before any message', () => {
    const world = new AdsWorld();
    world.call.emit('end');
    expect(world.call.status).toEqual({ code: 0, details: '' });
  });

  test('releases its node when the connection breaks', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: clusterType });
    world.call.emit('cancelled');
    expect(world.state()).toBe('closed');
    expect(world.source.nodes).toEqual([]);
  });

  test('is immediate during a drain if the stream is idle', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: clusterType });
    ackSotw(world, world.read()!, []);
    world.drain(10_000);
    expect(world.call.status?.code).toBe(0);
    expect(world.state()).toBe('closed');
  });

  test('is delayed during a drain until the last response is acknowledged, without further pushes', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: clusterType });
    world.drain(10_000);
    expect(world.state()).toBe('draining');
    world.source.set(clusterType, 'c');
    world.push();
    ackSotw(world, world.read()!, []);
    expect(world.state()).toBe('closed');
    expect(world.pendingWriteCount).toBe(0);
  });

  test('occurs at the deadline of a drain', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: clusterType });
    world.drain(10_000);
    world.clock.advance(9_999);
    expect(world.state()).toBe('draining');
    world.clock.advance(1);
    expect(world.state()).toBe('closed');
  });

  test('is immediate during a drain if the client has not identified itself', () => {
    const world = new AdsWorld();
    world.drain(10_000);
    expect(world.call.status).toMatchObject({ code: 14 });
  });

  test('does not wait for a client that does not read its status', () => {
    const world = meshWorld();
    world.sendSotw({ typeUrl: clusterType });
    world.call.end = () => {};
    world.call.emit('end');
    expect(world.state()).toBe('closing');
    world.clock.advance(5_000);
    expect(world.state()).toBe('closed');
  });
});

describe('every state', () => {
  const events = [
    ...new Set(
      adsCatalogue
        .filter(({ to, type }) => to === 'ads-connection-N' && !type.startsWith('timer'))
        .map(({ type }) => type as string),
    ),
  ];
  const leavesOf = (node: AnyStateNode): AnyStateNode[] => {
    const children = Object.values(node.states);
    return children.length === 0 ? [node] : children.flatMap(leavesOf);
  };
  const spokenOf = (node: AnyStateNode): string[] => [
    ...Object.keys((node.config as { on?: object }).on ?? {}),
    ...(node.parent === undefined ? [] : spokenOf(node.parent)),
  ];

  const peerEvents = ['peer.authenticated', 'peer.unauthenticated'];
  const nodeEvents = ['node.accepted', 'node.invalid', 'node.forbidden', 'node.missing'];
  /** Events that are impossible in a state and therefore diagnostic in its trace: each arrives once, where it is expected. */
  const impossible = (state: string): string[] => {
    if (state === 'authenticating') return nodeEvents;
    if (state === 'awaiting node') return peerEvents;
    return state === 'closing' ? [] : [...peerEvents, ...nodeEvents];
  };

  test.each(
    leavesOf(adsConnectionMachine.root)
      .filter(({ type }) => type !== 'final')
      .map((node) => [node.path.join('.'), node] as const),
  )('handles or explicitly ignores each possible event: %s', (state, node) => {
    expect(events.filter((type) => !spokenOf(node).includes(type)).sort()).toEqual(impossible(state).sort());
  });
});
