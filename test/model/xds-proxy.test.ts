/** The agent's xDS proxy with its charts (machines/agent/xds/xds-{proxy,stream}.machine.ts), in virtual time. */
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { maxFailures, noFailures, pauseAfter } from '../../machines/agent/xds/xds-pause.ts';
import { xdsProxyMachine } from '../../machines/agent/xds/xds-proxy.machine.ts';
import { xdsStreamMachine } from '../../machines/agent/xds/xds-stream.machine.ts';
import type { StreamReport } from '../../machines/agent/xds-protocol.ts';
import { checkTrace } from '../../src/debugger/check/check.ts';
import { formatReport } from '../../src/debugger/check/check-report-text.ts';
import { loadDiagrams } from '../../src/debugger/diagram/load.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { type XdsMachines, XdsWorld } from '../simulation/xds-world.ts';

const diagrams = loadDiagrams(join(packageRoot(), 'machines/agent/sequences')).filter(({ file }) =>
  /\/xds(-stream)?\.mmd$/.test(file),
);

afterEach(() => {
  for (const world of XdsWorld.instances.splice(0)) {
    expect(world.failure).toBeUndefined();
    expect(world.records.filter(({ kind }) => kind === 'unexpected')).toEqual([]);
    const report = checkTrace(diagrams, world.records);
    if (report.departures.length > 0) expect.fail(formatReport(report, diagrams));
  }
});

function startWorld(machines?: XdsMachines): XdsWorld {
  const world = new XdsWorld(undefined, machines);
  world.start();
  return world;
}

const unreachableReport: StreamReport = { type: 'upstream.unreachable', reason: 'ECONNREFUSED', chance: 1 };
const streamLost = (code: string, retryAfterMs = 0): StreamReport => ({
  type: 'upstream.lost',
  code,
  reason: 'gone',
  retryAfterMs,
});

describe('the socket of the xDS proxy', () => {
  test('is open before the agent is notified', () => {
    const world = startWorld();
    expect(world.reports).toMatchObject([{ type: 'xds.listening', socket: '/run/XDS' }]);
  });

  test('is reported with a reason if it is unavailable', () => {
    const world = new XdsWorld();
    world.refuseSocket('EADDRINUSE');
    expect(world.reports).toMatchObject([{ type: 'xds.failed', reason: 'EADDRINUSE' }]);
  });

  test('is not opened if it is disabled', () => {
    const world = new XdsWorld({ socket: '', hasSecrets: false, probe: null, proxyless: false });
    world.sendOrder({ type: 'xds.start' });
    expect(world.reports).toMatchObject([{ type: 'xds.listening', socket: '' }]);
  });
});

describe('a proxied stream', () => {
  test('waits while the control plane is unreachable, and reconnects with delays that double up to 1.5 s', () => {
    const world = startWorld();
    const stream = world.openStream();
    for (let i = 0; i < 6; i++) {
      world.upstream(stream, unreachableReport);
      const dialsBefore = world.dialTimes.length;
      while (world.dialTimes.length === dialsBefore) world.passTime(10);
    }
    const pauses = world.dialTimes.map((at, index) => at - (world.dialTimes[index - 1] ?? 0)).slice(1);
    expect(pauses).toEqual([200, 400, 800, 1_500, 1_500, 1_500]);
    expect(world.streamOf(stream).endStatuses).toEqual([]);
    world.respond(stream);
    expect(world.state(stream)).toMatchObject({ active: { relaying: { responses: 'verifying' } } });
  });

  test('ends when the control plane disconnects, and the next stream resets the failures when it is served', () => {
    const world = startWorld();
    const one = world.openStream();
    world.respond(one);
    world.upstream(one, streamLost('UNAVAILABLE'));
    expect(world.streamOf(one).endStatuses).toEqual([{ code: 'UNAVAILABLE', reason: 'gone' }]);
    expect(world.activeStreams()).toEqual([]);
    const secondStream = world.openStream();
    expect(world.state(secondStream)).toBe('backing off');
    world.passTime(200);
    world.respond(secondStream);
    world.passTime(10_000);
    expect(world.state(secondStream)).toMatchObject({ active: { relaying: { responses: 'established' } } });
    world.closeStream(secondStream);
    const three = world.openStream();
    expect(world.state(three)).toEqual({ active: 'connecting' });
  });

  test('waits longer if the control plane rejects it, and as long as the control plane specifies', () => {
    const world = startWorld();
    const one = world.openStream();
    world.upstream(one, { type: 'upstream.opened', credential: '' });
    world.upstream(one, streamLost('RESOURCE_EXHAUSTED', 60_000));
    const secondStream = world.openStream('0@7', 0);
    world.passTime(59_999);
    expect(world.state(secondStream)).toBe('backing off');
    world.passTime(1);
    expect(world.state(secondStream)).toEqual({ active: 'connecting' });
  });

  test("is replaced by a newer stream of the same Envoy, but not by a stream of the Envoy's child", () => {
    const world = startWorld();
    const parent = world.openStream('0@7');
    world.respond(parent);
    const child = world.openStream('1@7');
    world.respond(child);
    expect(world.activeStreams()).toEqual([parent, child]);
    const secondStream = world.openStream('1@7');
    expect(world.activeStreams()).toEqual([parent, secondStream]);
    expect(world.streamOf(child).endStatuses[0]?.code).toBe('CANCELLED');
  });

  test('is one of at most 64 for proxyless gRPC, and the oldest is closed when another one is opened', () => {
    const world = new XdsWorld({ socket: '/run/XDS', hasSecrets: true, probe: null, proxyless: true });
    world.start();
    const streams = Array.from({ length: 64 }, () => world.openStream(''));
    expect(world.activeStreams()).toEqual(streams);
    const last = world.openStream('');
    expect(world.activeStreams()).toEqual([...streams.slice(1), last]);
    expect(world.streamOf(streams[0]!).endStatuses).toEqual([
      { code: 'CANCELLED', reason: 'limit of 64 streams reached' },
    ]);
  });

  test('ends even if its Envoy does not read the status', () => {
    const world = startWorld();
    world.closesAfterEnd = false;
    const stream = world.openStream();
    world.upstream(stream, { type: 'upstream.opened', credential: '' });
    world.upstream(stream, { type: 'downstream.invalid', reason: 'no message' });
    expect(world.state(stream)).toBe('ending');
    world.passTime(10_000);
    expect(world.activeStreams()).toEqual([]);
  });

  test.each([
    ['Envoy reads', 'downstream.congested', 'downstream.relieved', 'DEADLINE_EXCEEDED'],
    ['the control plane reads', 'upstream.congested', 'upstream.relieved', 'UNAVAILABLE'],
  ] as const)('ends after 1 min if %s nothing more', (_, congested, relieved, code) => {
    const world = startWorld();
    const stream = world.openStream();
    world.respond(stream);
    world.upstream(stream, { type: congested });
    world.passTime(59_999);
    world.upstream(stream, { type: relieved });
    world.passTime(60_000);
    expect(world.activeStreams()).toEqual([stream]);
    world.upstream(stream, { type: congested });
    world.passTime(60_000);
    expect(world.streamOf(stream).endStatuses[0]?.code).toBe(code);
  });

  test('ends after 1 min if the control plane accepts it but never responds', () => {
    const world = startWorld();
    const stream = world.openStream();
    world.upstream(stream, { type: 'upstream.opened', credential: '' });
    world.passTime(60_000);
    expect(world.streamOf(stream).endStatuses).toEqual([
      { code: 'UNAVAILABLE', reason: 'control plane did not respond within 60000 ms' },
    ]);
  });
});

describe("Envoy's current certificate", () => {
  test('is reported over each existing connection and over each new one', () => {
    const world = startWorld();
    const first = world.openStream();
    world.sendOrder({ type: 'certificate.served', serialNumber: '4A' });
    world.respond(first);
    world.sendOrder({ type: 'certificate.served', serialNumber: '4B' });
    const secondStream = world.openStream('1@7');
    expect(world.streamOf(first).certificates).toEqual(['', '4A', '4B']);
    expect(world.streamOf(secondStream).certificates).toEqual(['4B']);
  });

  test('is reported over the next connection if it was acknowledged while there was no connection', () => {
    const world = startWorld();
    const stream = world.openStream();
    world.upstream(stream, { type: 'upstream.unreachable', reason: 'nobody is there', chance: 0 });
    world.sendOrder({ type: 'certificate.served', serialNumber: '4A' });
    expect(world.streamOf(stream).certificates).toEqual(['']);
    world.passTime(60_000);
    expect(world.streamOf(stream).certificates.slice(0, 2)).toEqual(['', '4A']);
  });
});

describe('roots from the control plane', () => {
  const bundleReceived = (hash: string): StreamReport => ({
    type: 'bundle.received',
    members: [],
    tainted: [],
    roots: ['pem'],
    hash,
  });
  const createOpenWorld = (): { world: XdsWorld; stream: number } => {
    const world = startWorld();
    const stream = world.openStream();
    world.respond(stream);
    world.upstream(stream, bundleReceived('a'));
    return { world, stream };
  };

  test('are acknowledged only after they are served', () => {
    const { world, stream } = createOpenWorld();
    expect(world.reports.at(-1)).toMatchObject({ type: 'trust-bundle.received', roots: ['pem'], hash: 'a' });
    world.sendOrder({ type: 'trust-bundle.served', hash: 'another' });
    world.passTime(29_999);
    expect(world.streamOf(stream).bundleResponses).toEqual([]);
    world.sendOrder({ type: 'trust-bundle.served', hash: 'a' });
    world.sendOrder({ type: 'trust-bundle.served', hash: 'a' });
    expect(world.streamOf(stream).bundleResponses).toEqual([{ hash: 'a', refusal: '' }]);
  });

  test('are eventually rejected with a reason if Envoy does not acknowledge them', () => {
    const { world, stream } = createOpenWorld();
    world.passTime(30_000);
    const refusal = expect.stringMatching(/Envoy did not acknowledge the trust bundle within 30000 ms/);
    expect(world.streamOf(stream).bundleResponses).toEqual([{ hash: 'a', refusal }]);
  });

  test('are acknowledged once after the rejection if Envoy acknowledges them after the limit', () => {
    const { world, stream } = createOpenWorld();
    world.passTime(60_000);
    for (const hash of ['another', 'a', 'a']) world.sendOrder({ type: 'trust-bundle.served', hash });
    const refusals = world.streamOf(stream).bundleResponses.map(({ refusal }) => refusal !== '');
    expect(refusals).toEqual([true, false]);
    world.upstream(stream, bundleReceived('b'));
    world.sendOrder({ type: 'trust-bundle.served', hash: 'b' });
    expect(world.streamOf(stream).bundleResponses.at(-1)).toEqual({ hash: 'b', refusal: '' });
  });

  test('are not acknowledged if newer ones replace them after the limit', () => {
    const { world, stream } = createOpenWorld();
    world.passTime(60_000);
    world.upstream(stream, bundleReceived('b'));
    world.sendOrder({ type: 'trust-bundle.served', hash: 'a' });
    expect(world.streamOf(stream).bundleResponses).toHaveLength(1);
    world.passTime(30_000);
    world.sendOrder({ type: 'trust-bundle.served', hash: 'b' });
    expect(world.streamOf(stream).bundleResponses.map(({ hash, refusal }) => [hash, refusal !== ''])).toEqual([
      ['a', true],
      ['b', true],
      ['b', false],
    ]);
  });

  test('are not acknowledged if newer ones replace them', () => {
    const { world, stream } = createOpenWorld();
    world.passTime(20_000);
    world.upstream(stream, bundleReceived('b'));
    world.sendOrder({ type: 'trust-bundle.served', hash: 'a' });
    world.passTime(20_000);
    expect(world.streamOf(stream).bundleResponses).toEqual([]);
    world.sendOrder({ type: 'trust-bundle.served', hash: 'b' });
    expect(world.streamOf(stream).bundleResponses).toEqual([{ hash: 'b', refusal: '' }]);
  });

  test('are rejected immediately if this agent serves no secrets', () => {
    const world = new XdsWorld({ socket: '/run/XDS', hasSecrets: false, probe: null, proxyless: false });
    world.start();
    const stream = world.openStream();
    world.respond(stream);
    world.upstream(stream, bundleReceived('a'));
    const refusal = expect.stringMatching(/serves no secrets/);
    expect(world.streamOf(stream).bundleResponses).toEqual([{ hash: 'a', refusal }]);
  });
});

describe('the credential for the control plane', () => {
  const dialing = (world: XdsWorld): number => {
    const stream = world.openStream();
    while (!world.streamOf(stream).upstream) world.passTime(100);
    return stream;
  };
  const refusedOnce = (world: XdsWorld): void => {
    const stream = dialing(world);
    world.upstream(stream, { type: 'upstream.opened', credential: '' });
    world.upstream(stream, streamLost('UNAUTHENTICATED'));
  };

  test('is the token or, after a rejected token, the certificate as long as it is accepted', () => {
    const world = startWorld();
    refusedOnce(world);
    const secondStream = world.openStream();
    // The stream opens soon, because an expired token does not delay it.
    world.passTime(200);
    world.respond(secondStream);
    world.passTime(20_000);
    world.closeStream(secondStream);
    const third = world.openStream();
    world.respond(third);
    world.upstream(third, streamLost('UNAVAILABLE'));
    dialing(world);
    expect(world.presentedCredentials).toEqual(['token', 'certificate', 'certificate', 'token']);
  });

  test('alternates with increasing delays if neither token nor certificate is accepted', () => {
    const world = startWorld();
    for (let time = 0; time < 8; time++) refusedOnce(world);
    expect(world.presentedCredentials).toEqual([
      'token',
      'certificate',
      'token',
      'certificate',
      ...world.presentedCredentials.slice(0, 4),
    ]);
    expect(pauseAfter({ ...noFailures, count: 8, isRefusal: true }, 0)).toBe(7_500);
  });

  test('is the token while the control plane is unreachable', () => {
    const world = startWorld();
    const stream = world.openStream();
    for (let time = 0; time < 5; time++) {
      world.upstream(stream, unreachableReport);
      world.passTime(2_000);
    }
    expect(new Set(world.presentedCredentials)).toEqual(new Set(['token']));
  });
});

test('a delay is half random, at most its maximum, and at least as long as the control plane requires', () => {
  for (let count = 0; count <= maxFailures; count++) {
    for (const chance of [0, 0.5, 1]) {
      const plain = pauseAfter({ ...noFailures, count }, chance);
      expect(plain).toBeLessThanOrEqual(1_500);
      expect(pauseAfter({ ...noFailures, count, isRefusal: true }, chance)).toBeLessThanOrEqual(15_000);
      if (count > 0)
        expect(pauseAfter({ ...noFailures, count, retryAfterMs: 4_000 }, chance)).toBeGreaterThanOrEqual(4_000);
    }
  }
  expect(pauseAfter({ ...noFailures, count: 4 }, 0)).toBe(750);
});

/** Possible events, in any order. */
const eventNames = [
  'open 0',
  'open 1',
  'open other',
  'close',
  'opened',
  'unreachable',
  'answered',
  'lost',
  'refused',
  'invalid',
  'congested',
  'relieved',
  'bundle',
  'served',
  'pass 100',
  'pass 2000',
  'pass 30000',
  'envoys hang',
] as const;

/** Plays a schedule. @returns violations */
function runSchedule(
  schedule: readonly (readonly [(typeof eventNames)[number], number])[],
  machines?: XdsMachines,
): string[] {
  const world = startWorld(machines);
  const problems: string[] = [];
  let otherStreams = 0;
  let bundles = 0;
  const servedHashes = new Set<string>();
  for (const [eventName, pick] of schedule) {
    const alive = world.activeStreams();
    const stream = alive[pick % Math.max(1, alive.length)];
    if (eventName.startsWith('open '))
      world.openStream(eventName === 'open other' ? `x${otherStreams++}` : eventName, (pick % 11) / 10);
    else if (eventName.startsWith('pass ')) world.passTime(Number(eventName.slice(5)));
    else if (eventName === 'envoys hang') world.closesAfterEnd = !world.closesAfterEnd;
    else if (eventName === 'served') {
      servedHashes.add(String(bundles));
      world.sendOrder({ type: 'trust-bundle.served', hash: String(bundles) });
    } else if (stream !== undefined) {
      if (eventName === 'close') world.closeStream(stream);
      else if (world.streamOf(stream).upstream) {
        const isDialing = JSON.stringify(world.state(stream)) === '{"active":"connecting"}';
        if (isDialing !== (eventName === 'opened' || eventName === 'unreachable')) continue;
        // The first response is delivered only once.
        if (eventName === 'answered' && !JSON.stringify(world.state(stream)).includes('pending')) continue;
        const events: Partial<Record<typeof eventName, StreamReport>> = {
          opened: { type: 'upstream.opened', credential: '' },
          unreachable: { type: 'upstream.unreachable', reason: 'ECONNREFUSED', chance: (pick % 11) / 10 },
          answered: { type: 'upstream.responded' },
          lost: streamLost('UNAVAILABLE'),
          refused: streamLost('UNAUTHENTICATED'),
          invalid: { type: 'downstream.invalid', reason: 'x' },
          congested: { type: 'downstream.congested' },
          relieved: { type: 'downstream.relieved' },
          bundle: { type: 'bundle.received', members: [], tainted: [], roots: ['r'], hash: String(++bundles) },
        };
        world.upstream(stream, events[eventName]!);
      }
    }
    problems.push(...wrongIn(world, servedHashes));
    if (problems.length > 0) return problems;
  }
  // Envoys that exited leave no state behind.
  for (const stream of world.activeStreams()) world.closeStream(stream);
  world.passTime(10_000);
  if (world.activeStreams().length > 0) problems.push('a stream outlives its Envoy');
  // A test of a broken chart has its own report.
  if (machines !== undefined) XdsWorld.instances.splice(XdsWorld.instances.indexOf(world), 1);
  return problems;
}

function wrongIn(world: XdsWorld, servedHashes: ReadonlySet<string>): string[] {
  const problems: string[] = [];
  const active = world.streams.filter(
    ({ stream }) => world.state(stream) !== undefined && world.state(stream) !== 'ending',
  );
  if (new Set(active.map(({ envoy }) => envoy)).size < active.length) problems.push('two streams of one Envoy');
  if (active.length > 8) problems.push(`${active.length} streams`);
  for (const { stream, downstream, upstream, bundleResponses } of world.streams) {
    if (world.state(stream) === undefined && upstream) problems.push('a connection without a stream');
    if (world.state(stream) === undefined && downstream) problems.push('a stream of nobody');
    if (bundleResponses.some(({ hash, refusal }) => refusal === '' && !servedHashes.has(hash)))
      problems.push('acknowledged too early');
  }
  // The control plane is never dialed without a backoff, whatever fails and connects.
  const now = world.clock.now();
  const lately = world.dialTimes.filter((at) => at > now - 5_000).length;
  if (lately > 16 + 8 * 25) problems.push(`${lately} dials in 5 s`);
  return problems;
}

const schedules = fc.array(fc.tuple(fc.constantFrom(...eventNames), fc.nat(20)), { maxLength: 60 });

test('the xDS proxy keeps one stream per Envoy, few connections and no leftover state, and never acknowledges early', () => {
  fc.assert(
    fc.property(schedules, (schedule) => {
      expect(runSchedule(schedule)).toEqual([]);
    }),
    { numRuns: 600 },
  );
});

describe('random schedules with a faulty xDS proxy', () => {
  const afterwards = (result: unknown): unknown => {
    XdsWorld.instances.splice(0);
    return result;
  };

  test('detect a proxy that keeps older streams', () => {
    const proxy = xdsProxyMachine.provide({ actions: { supersedeStreams: () => {} } });
    const machines = { proxy, stream: xdsStreamMachine };
    const { failed } = fc.check(
      fc.property(schedules, (schedule) => runSchedule(schedule, machines).length === 0),
      { numRuns: 500 },
    );
    expect(afterwards(failed)).toBe(true);
  });

  test('detect a stream that acknowledges roots that are trusted on other streams', () => {
    const stream = xdsStreamMachine.provide({ guards: { isPendingBundle: () => true } });
    const schedule = [
      ...(['open 0', 'open 1'] as const).map((eventName) => [eventName, 0] as const),
      ...(['opened', 'bundle'] as const).flatMap((eventName) => [0, 1].map((pick) => [eventName, pick] as const)),
      ['served', 0] as const,
    ];
    expect(runSchedule(schedule)).toEqual([]);
    expect(afterwards(runSchedule(schedule, { proxy: xdsProxyMachine, stream }))).toEqual(['acknowledged too early']);
  });

  test('detect a stream that reconnects without a delay', () => {
    const world = startWorld({ proxy: xdsProxyMachine, stream: xdsStreamMachine.provide({ delays: { pause: 0 } }) });
    const stream = world.openStream();
    for (let i = 0; i < 300; i++) {
      world.upstream(stream, unreachableReport);
      world.passTime(10);
    }
    expect(wrongIn(world, new Set()).join()).toMatch(/dials in 5 s/);
  });
});
