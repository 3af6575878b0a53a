/** Requests that no correct client sends affect at most their own stream. */

import { afterEach, describe, expect, test } from 'vitest';
import {
  clusterType,
  endpointType,
  listenerType,
  routeType,
  secretType,
} from '../../machines/discovery/xds/ads-types.ts';
import type { EncodedResource } from '../../src/discovery/xds/resource-source.ts';
import type { Logger } from '../../src/runtime/output/log.ts';
import { type LoggedEvent, recordingLog } from '../harness/recording-log.ts';
import { AdsWorld } from '../simulation/ads-world.ts';

afterEach(() => {
  for (const world of AdsWorld.instances.splice(0)) {
    expect(world.failure).toBeUndefined();
    const { context } = world.actor.getSnapshot();
    expect(JSON.parse(JSON.stringify(context))).toEqual(context);
  }
});

function createLog(): { logger: Logger; lines: LoggedEvent[] } {
  const { log: logger, lines } = recordingLog('default:info');
  return { logger, lines };
}

function createWorld(options: ConstructorParameters<typeof AdsWorld>[0] = {}): AdsWorld {
  const world = new AdsWorld(options);
  for (const name of ['a', 'b']) world.source.set(clusterType, name);
  return world;
}

const inheritedNames = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf'];

describe('a type with the name of an Object.prototype property', () => {
  const nonces = ['', 'stale'];
  const cases = inheritedNames.flatMap((typeUrl) => nonces.map((responseNonce) => ({ typeUrl, responseNonce })));

  test.each(cases)(
    'creates no watch and does not end the stream: $typeUrl, nonce "$responseNonce"',
    ({ typeUrl, responseNonce }) => {
      for (const delta of [false, true]) {
        const world = createWorld({ isDelta: delta });
        const send = delta ? world.sendDelta.bind(world) : world.sendSotw.bind(world);
        send({ typeUrl, responseNonce });
        send({ typeUrl, responseNonce, errorDetail: { code: 3, message: 'no' } });
        world.push();
        expect(Object.keys(world.watches)).toEqual([]);
        send({ typeUrl: clusterType });
        expect(world.readAll().map((sentResponse) => sentResponse.typeUrl)).toEqual([clusterType]);
      }
    },
  );

  test.each(inheritedNames)('matches no resource, as a name and in metadata: %s', (name) => {
    const world = createWorld();
    const metadata = JSON.parse(`{"${name}": {"${name}": "x"}, "LABELS": {"${name}": "y"}}`);
    world.sendSotw({ typeUrl: endpointType, resourceNames: [name, 'a'], node: { id: 'n', metadata } });
    world.sendSotw({ typeUrl: clusterType, resourceNames: [name] });
    expect(world.readAll().map(({ resources }) => resources.size)).toEqual([0]);
    expect(world.state()).toBe('streaming.delivery.up to date');
  });
});

describe('resource versions in a first delta request', () => {
  const versionOf = (world: AdsWorld, name: string): string => world.source.types.get(clusterType)!.get(name)!.version;

  test('match no resource if they belong to another resource, are empty or too long, or differ in case', () => {
    const world = createWorld({ isDelta: true });
    const versions = ['', ' ', versionOf(world, 'b'), `${versionOf(world, 'a')} `, 'x'.repeat(1_000_000), '\uFFFF'];
    for (const version of versions) {
      const deltaWorld = createWorld({ isDelta: true });
      deltaWorld.sendDelta({
        typeUrl: clusterType,
        initialResourceVersions: { a: version, b: versionOf(deltaWorld, 'b') },
      });
      expect([...deltaWorld.read()!.resources.keys()]).toEqual(['a']);
    }
  });

  test.each(inheritedNames)('are treated as those of a missing resource for the name %s', (name) => {
    const world = createWorld({ isDelta: true });
    const initialResourceVersions = JSON.parse(`{"${name}": "1", "a": "${versionOf(world, 'a')}"}`);
    world.sendDelta({ typeUrl: clusterType, initialResourceVersions });
    const sentResponse = world.read()!;
    expect([[...sentResponse.resources.keys()], sentResponse.removedNames]).toEqual([['b'], [name]]);
  });

  test('end the stream if they have too many names', () => {
    const world = createWorld({ isDelta: true });
    const versions = Object.fromEntries(Array.from({ length: 200_001 }, (_, i) => [`n${i}`, '1']));
    world.sendDelta({ typeUrl: clusterType, initialResourceVersions: versions });
    expect(world.call.status?.code).toBe(8);
  });

  test('get no response for a rejected type, whether they are valid or not', () => {
    const world = createWorld({ isDelta: true });
    world.source.set(secretType, 'kubernetes://cert');
    const [[name, { version }]] = [...world.source.types.get(secretType)!] as [[string, EncodedResource]];
    for (const reportedVersion of [version, 'wrong']) {
      world.sendDelta({
        typeUrl: secretType,
        initialResourceVersions: { [name]: reportedVersion },
        resourceNamesSubscribe: [name],
      });
      expect(world.readAll()).toEqual([]);
    }
  });
});

describe('types without a generator', () => {
  test('are not stored, however many there are, and are logged only once', () => {
    const { logger, lines } = createLog();
    const world = createWorld({ logger });
    for (let i = 0; i < 5_000; i++) world.sendSotw({ typeUrl: `unknown.Type${i}`, resourceNames: [`${i}`] });
    expect(world.watches).toEqual({});
    expect(lines).toMatchObject([{ event: 'request.judged.unserved', level: 'warn' }]);
    world.sendSotw({ typeUrl: clusterType });
    expect(world.pendingWriteCount).toBe(1);
  });
});

describe('resource names', () => {
  const name = (i: number): string => `outbound|80||s${i}.shop.svc.cluster.local`;
  const names = (count: number, from = 0): string[] => Array.from({ length: count }, (_, i) => name(from + i));

  test('are accepted for a large mesh: 100,000 in one request, and again in the next', () => {
    const world = createWorld();
    world.sendSotw({ typeUrl: endpointType, resourceNames: names(100_000) });
    expect(world.watch(endpointType)?.names).toHaveLength(100_000);
    world.sendSotw({ typeUrl: endpointType, resourceNames: names(100_000, 1) });
    world.sendSotw({ typeUrl: routeType, resourceNames: names(1_000) });
    expect(world.state()).toBe('streaming.delivery.up to date');
    expect(world.pendingWriteCount).toBe(0);
  });

  test.each([
    ['too many in one request', { maxNames: 1_000 }, false],
    ['too many, few at a time', { maxNames: 1_000 }, true],
    ['too long together', { maxNameChars: 40_000 }, true],
  ])('end the stream with a reason if they are %s', (_, limits, delta) => {
    const world = createWorld({ isDelta: delta, limits });
    for (let i = 0; i < 11 && world.call.status === undefined; i++) {
      if (delta) world.sendDelta({ typeUrl: endpointType, resourceNamesSubscribe: names(100, i * 100) });
      else world.sendSotw({ typeUrl: endpointType, resourceNames: names((i + 1) * 100) });
    }
    expect(world.call.status).toEqual({
      code: 8,
      details: expect.stringMatching(
        /^the limit of \d+ resource names \(\d+ characters in total\) .*\[STREAM_NAMES_EXHAUSTED\]$/,
      ),
    });
  });

  describe('a gRPC program without a proxy', () => {
    const grpc = { metadata: { GENERATOR: 'grpc' } };
    const status = {
      code: 8,
      details:
        'the limit of 10000 resource names (1048576 characters in total) of one stream of a gRPC program is exceeded [STREAM_NAMES_EXHAUSTED]',
    };

    test('subscribes to up to 10,000 resource names, and one more ends its stream', () => {
      const world = createWorld(grpc);
      world.sendSotw({ typeUrl: listenerType, resourceNames: names(2_000) });
      world.sendSotw({ typeUrl: endpointType, resourceNames: names(8_000) });
      expect(world.call.status).toBeUndefined();
      expect(world.watch(endpointType)?.names).toHaveLength(8_000);
      world.sendSotw({ typeUrl: routeType, resourceNames: names(1) });
      expect(world.call.status).toEqual(status);
    });

    test.each([
      ['too many names', names(10_001)],
      ['more names than the server reads', names(200_001)],
      ['too many characters', ['x'.repeat(1024 * 1024), 'y']],
    ])('ends its stream if the first request has %s', (_, resourceNames) => {
      const world = createWorld(grpc);
      world.sendSotw({ typeUrl: listenerType, resourceNames });
      expect(world.call.status).toEqual(status);
    });

    test("has the operator's limit of resource names if that is lower", () => {
      const world = createWorld({ ...grpc, limits: { maxNames: 100 } });
      world.sendSotw({ typeUrl: listenerType, resourceNames: names(101) });
      expect(world.call.status?.details).toMatch(/^the limit of 100 resource names .* of one stream of a gRPC program/);
    });
  });

  test('are not counted after they are unsubscribed', () => {
    const world = createWorld({ isDelta: true, limits: { maxNames: 150 } });
    for (let i = 0; i < 20; i++) {
      const unsubscribed = i === 0 ? [] : names(100, (i - 1) * 100);
      world.sendDelta({
        typeUrl: endpointType,
        resourceNamesSubscribe: names(100, i * 100),
        resourceNamesUnsubscribe: unsubscribed,
      });
    }
    expect(world.state()).toBe('streaming.delivery.up to date');
  });
});

describe('texts from a client', () => {
  const megabyte = 'x'.repeat(1_000_000);

  test.each([
    ['id', { id: megabyte }],
    ['cluster', { id: 'n', cluster: megabyte }],
    ['metadata', { id: 'n', metadata: { text: megabyte } }],
  ])('are rejected if a node field has megabytes: %s', (_, node) => {
    const { logger, lines } = createLog();
    const world = createWorld({ logger });
    world.sendSotw({ typeUrl: clusterType, node });
    expect(world.call.status).toMatchObject({
      code: 3,
      details: expect.stringMatching(/^node .*must have at most \d+ .*\[NODE_INVALID\]$/),
    });
    expect(world.call.status!.details.length).toBeLessThan(300);
    expect(world.source.nodes).toEqual([]);
    expect(JSON.stringify(lines).length).toBeLessThan(500);
  });

  test('are stored and logged up to a readable length if they are in a rejection', () => {
    const { logger, lines } = createLog();
    const world = createWorld({ logger });
    world.sendSotw({ typeUrl: clusterType });
    const { nonce } = world.read()!;
    world.sendSotw({ typeUrl: clusterType, responseNonce: nonce, errorDetail: { code: 3, message: megabyte } });
    expect(world.watch(clusterType)?.lastError).toHaveLength(2_048);
    expect(JSON.stringify(lines).length).toBeLessThan(1_000);
  });

  test('are logged in one line per minute with their number if they are in many rejections', () => {
    const { logger, lines } = createLog();
    const world = createWorld({ logger });
    world.sendSotw({ typeUrl: clusterType });
    const reject = () =>
      world.sendSotw({ typeUrl: clusterType, responseNonce: 'x', errorDetail: { code: 3, message: 'no' } });
    for (let i = 0; i < 1_000; i++) reject();
    expect(lines).toHaveLength(1);
    world.clock.advance(60_000);
    reject();
    expect(lines[1]).toMatchObject({ event: 'request.judged.rejection', repeated: 999 });
    reject();
    world.call.emit('cancelled');
    expect(lines[2]).toMatchObject({ event: 'request.judged.rejection', repeated: 1 });
    expect(lines).toHaveLength(3);
  });

  test('are truncated before use if type, nonce or name has megabytes', () => {
    const world = createWorld();
    world.sendSotw({ typeUrl: megabyte, responseNonce: megabyte });
    const events = world.records.filter((record) => record.kind === 'event');
    expect(JSON.stringify(events).length).toBeLessThan(5_000);
  });
});

describe('a node without subscriptions', () => {
  test('records changes for its next subscription', () => {
    const world = createWorld();
    world.sendSotw({ typeUrl: endpointType, resourceNames: [''] });
    world.push(clusterType);
    expect(world.source.notifiedTypes).toEqual([[]]);
  });
});
