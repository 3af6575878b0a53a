import { expect, test } from 'vitest';
import { createMachine } from 'xstate';
import { agentMachine } from '../../../machines/agent/agent.machine.ts';
import { discoveryProgramMachines } from '../../../machines/discovery/program-machines.ts';
import { machinesOf, statechartOf } from '../../../src/runtime/trace/statechart.ts';
import type { TraceBody, TraceHeader, TraceRecord } from '../../../src/runtime/trace/trace.ts';
import { headerWith } from '../../../test/fixtures/trace-header.ts';
import { type Lane, Lanes, maxActorLanes, maxUnknownMachines } from './lanes.ts';

const header = headerWith({ program: 'pilot-agent', machines: machinesOf(agentMachine).map(statechartOf) });
const controlPlane: TraceHeader = {
  ...header,
  machines: machinesOf(...discoveryProgramMachines).map(statechartOf),
};

/** Appends the records, the i-th at i × 10 ms. */
function lanesOf(bodies: readonly TraceBody[], of = header): Lanes {
  const lanes = new Lanes(of);
  bodies.forEach((body, i) => {
    lanes.addRecord({ seq: i + 1, t: i * 10, ...body } as TraceRecord, i);
  });
  return lanes;
}
const laneNamed = (lanes: Lanes, name: string): Lane => lanes.lanes.find((lane) => lane.name === name)!;
const spansOf = (lane: Lane): unknown[] => lane.spans.map(({ phase, from, to }) => [phase, from, to]);

const spawn = (actor: string, machine?: string): TraceBody => ({
  kind: 'spawn',
  actor,
  ...(machine !== undefined && { machine }),
});
const enters = (actor: string, to: string): TraceBody => ({ kind: 'transition', actor, from: '', to, on: 'any' });
const stop = (actor: string): TraceBody => ({ kind: 'stop', actor, status: 'done' });
const event = (type: string, payload: object = {}, from = 'a', to = 'b'): TraceBody => ({
  kind: 'event',
  from,
  to,
  event: { type, ...payload },
});

test('the life of an epoch is a lane of phases', () => {
  const lanes = lanesOf([
    spawn('epoch-0', 'epoch'),
    enters('epoch-0', 'preparing'),
    enters('epoch-0', 'running.initializing'),
    enters('epoch-0', 'running.live'),
    enters('epoch-0', 'running.draining parent.draining'),
    enters('epoch-0', 'running.draining parent.exit due'),
    enters('epoch-0', 'exited'),
    stop('epoch-0'),
  ]);
  expect(spansOf(laneNamed(lanes, 'epoch-0'))).toEqual([
    ['starting', 0, 30],
    ['live', 30, 40],
    ['draining', 40, 60],
  ]);
});

test('an actor of a machine without states is a bar from its spawn to its end', () => {
  const flat = headerWith({ program: 'any', machines: [statechartOf(createMachine({ id: 'flat' }))] });
  const lanes = lanesOf([spawn('counter', 'flat'), event('inc'), stop('counter')], flat);
  expect(spansOf(laneNamed(lanes, 'counter'))).toEqual([['running', 0, 20]]);
});

test('all lives of an epoch with a reused number are in one lane, and epochs are ordered by number', () => {
  const lanes = lanesOf([
    spawn('epoch-10', 'epoch'),
    spawn('epoch-2', 'epoch'),
    stop('epoch-2'),
    spawn('epoch-2', 'epoch'),
  ]);
  expect(lanes.lanes.map(({ name }) => name)).toEqual(['epoch-2', 'epoch-10']);
  expect(spansOf(laneNamed(lanes, 'epoch-2'))).toEqual([
    ['starting', 10, 20],
    ['starting', 30, undefined],
  ]);
});

test.each([
  ['', 'starting'],
  ['running.starting', 'starting'],
  ['running.live', 'live'],
  ['running.draining', 'draining'],
  ['running.retiring.terminating', 'retiring'],
  ['running.ending.killing', 'ending'],
  ['exited', 'gone'],
])('an epoch in the state %j has the phase %s', (state, phase) => {
  expect(new Lanes(header).phaseOf({ machine: 'epoch', state })).toBe(phase);
});

test('signals, changes, restarts and retries are marks, and a failure is a mark on the lane of its epoch', () => {
  const lanes = lanesOf([
    spawn('supervisor', 'supervisor'),
    event('config.changed'),
    event('restart.decided', { name: 'epoch-0', how: 'cold start', reason: 'first start', attempt: 1 }),
    spawn('epoch-0', 'epoch'),
    event('epoch.failed', { name: 'epoch-0', during: 'serving', reason: 'exit code 139' }),
    { kind: 'timer', actor: 'supervisor', timer: 'backoff' },
    event('restart.decided', { name: 'epoch-0', how: 'cold start', reason: 'Envoy crashed', attempt: 2 }),
    event('signal.received', { signal: 'SIGHUP' }),
  ]);
  expect(laneNamed(lanes, 'program').marks.map(({ kind, index }) => [kind, index])).toEqual([
    ['change', 1],
    ['restart', 2],
    ['retry', 5],
    ['retry', 6],
    ['signal', 7],
  ]);
  expect(laneNamed(lanes, 'epoch-0').marks).toMatchObject([
    { kind: 'failure', t: 40, title: 'epoch-0 failed while serving: exit code 139' },
  ]);
});

test('an epoch that the supervisor marks as doomed has one mark', () => {
  const orphaned: TraceBody = {
    ...enters('supervisor', 'running.settled'),
    change: [{ path: '/epochs', value: [{ name: 'epoch-1', doomed: true }] }],
  } as TraceBody;
  const lanes = lanesOf([spawn('supervisor', 'supervisor'), spawn('epoch-1', 'epoch'), orphaned, orphaned]);
  expect(laneNamed(lanes, 'epoch-1').marks).toHaveLength(1);
});

test('actors that were running before the first record have lanes', () => {
  const lanes = lanesOf([enters('epoch-3', 'running.draining'), stop('epoch-3')], {
    ...header,
    actors: [{ actor: 'epoch-3', machine: 'epoch', state: 'running.live', spawned: 1, spawnedAt: -500 }],
  });
  expect(spansOf(laneNamed(lanes, 'epoch-3'))).toEqual([
    ['live', -500, 0],
    ['draining', 0, 10],
  ]);
});

test('a control plane shows sources, pushes and the number of connections, and no epochs', () => {
  const lanes = lanesOf(
    [
      spawn('config-controller', 'config-controller'),
      spawn('service-registry', 'service-registry'),
      spawn('push', 'push'),
      spawn('ads-connection-1', 'ads-connection'),
      spawn('ads-connection-2', 'ads-connection'),
      event('configs.changed', { changes: [1, 2] }, 'config-controller', 'service-registry'),
      event('push.request', {}, 'service-registry', 'push'),
      { ...spawn('push/context'), parent: 'push' } as TraceBody,
      stop('push/context'),
      event('clients.push', { version: 'v2', forced: false, configs: ['a'] }, 'push', 'discovery/ads-server'),
      stop('ads-connection-1'),
    ],
    controlPlane,
  );
  expect(lanes.lanes.map(({ name }) => name)).toEqual(['sources', 'pushes', 'connections']);
  expect(laneNamed(lanes, 'sources').marks).toMatchObject([{ title: '2 configuration objects changed' }]);
  expect(laneNamed(lanes, 'pushes').marks.map(({ kind }) => kind)).toEqual(['request', 'push']);
  expect(spansOf(laneNamed(lanes, 'pushes'))).toEqual([['building', 70, 80]]);
  const connections = laneNamed(lanes, 'connections');
  expect([30, 40, 95, 100].map((t) => connections.counts.findLast((count) => count.t <= t)?.n)).toEqual([1, 2, 2, 1]);
});

test('only visible changes increase the version of the lanes', () => {
  const lanes = new Lanes(header);
  const feed = (body: TraceBody): number => {
    lanes.addRecord({ seq: 1, t: 0, ...body } as TraceRecord, 0);
    return lanes.version;
  };
  const initialVersion = lanes.version;
  expect(feed(event('probe.passed'))).toBe(initialVersion);
  expect(feed(event('signal.received', { signal: 'SIGTERM' }))).toBeGreaterThan(initialVersion);
});

test('reading an unchanged file again does not change the lanes', () => {
  const lanes = lanesOf([
    event('config.changed', { digest: 'one', files: 1 }),
    event('config.changed', { digest: 'one', files: 1 }),
    event('config.changed', { digest: 'two', files: 1 }),
    event('config.changed', { digest: 'one', files: 1 }),
  ]);
  expect(laneNamed(lanes, 'program').marks.map(({ index }) => index)).toEqual([0, 2, 3]);
});

test('the legend lists the existing phases and marks', () => {
  const lanes = lanesOf([spawn('epoch-0', 'epoch'), enters('epoch-0', 'running.live'), event('signal.received')]);
  expect([...lanes.phases]).toEqual(['starting', 'live']);
  expect([...lanes.kinds]).toEqual(['signal']);
});

const lock = statechartOf(
  createMachine({
    id: 'lock',
    initial: 'locked',
    states: { locked: { on: { turn: 'open' } }, open: { on: { turn: 'locked' } } },
  }),
);

test('a machine without lane definitions has a lane for each actor, with the names of its states', () => {
  const lanes = lanesOf([spawn('lock', 'lock'), enters('lock', 'locked'), enters('lock', 'open'), stop('lock')], {
    ...header,
    machines: [lock],
  });
  expect(lanes.lanes.map(({ name }) => name)).toEqual(['lock']);
  expect(spansOf(laneNamed(lanes, 'lock'))).toEqual([
    ['locked', 10, 20],
    ['open', 20, 30],
  ]);
  expect(['locked', 'open', 'live'].map((phase) => lanes.colourOf(phase))).toEqual([0, 1, undefined]);
});

test('the first of ten thousand actors of a machine without lane definitions have lanes, and the others are counted', () => {
  const bodies = Array.from({ length: 10_000 }, (_, i) => spawn(`lock-${i}`, 'lock'));
  const lanes = lanesOf([...bodies, stop('lock-9999'), stop('lock-0')], { ...header, machines: [lock] });
  expect(lanes.lanes).toHaveLength(25);
  expect(laneNamed(lanes, 'more lock').counts.at(-1)?.n).toBe(10_000 - 24 - 1);
});

test('actors of undefined machines have a limited number of lanes, and the others are counted', () => {
  const bodies = Array.from({ length: 10_000 }, (_, i) => spawn(`lock-${i}`, `machine ${i}`));
  const lanes = lanesOf([...bodies, stop('lock-9999'), stop('lock-0')]);
  const lanesOfOthers = 24;
  const withLane = maxUnknownMachines + lanesOfOthers;
  expect(lanes.lanes.filter(({ spans, counts }) => spans.length + counts.length === 0)).toHaveLength(withLane);
  expect(laneNamed(lanes, 'more actors').counts.at(-1)?.n).toBe(10_000 - withLane - 1);
});

test('a header that lists more actors than a function has arguments is read', () => {
  const actors = Array.from({ length: 300_000 }, (_, i) => ({
    actor: `lock-${i}`,
    machine: 'lock',
    state: 'locked',
    spawned: i + 1,
    spawnedAt: i,
  }));
  const lanes = new Lanes({ ...header, actors });
  expect(laneNamed(lanes, 'more lock').counts).toEqual([{ t: 299_999, n: 300_000 - 24 }]);
});

test('the actors beyond the limit of a machine with a lane for each actor are counted', () => {
  const bodies = Array.from({ length: maxActorLanes + 10 }, (_, i) => spawn(`epoch-${i}`, 'epoch'));
  const last = `epoch-${maxActorLanes + 9}`;
  const lanes = lanesOf([...bodies, enters(last, 'running.live'), stop(last), stop('epoch-0')]);
  expect(lanes.lanes.filter(({ spans }) => spans.length > 0)).toHaveLength(maxActorLanes);
  expect(laneNamed(lanes, 'more epoch').counts.map(({ n }) => n)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 9]);
});

test('mark rules of a machine come from the header, not from the name of a program', () => {
  const marks = [
    { event: 'key.turned', kind: 'change', text: '{by} turns {keys:key}', lane: '{name}' },
    { event: 'key.turned', kind: 'invented later', text: 'never' },
    { timer: 'patience', kind: 'retry', text: 'Nobody came' },
  ] as const;
  const lanes = lanesOf(
    [
      spawn('lock-1', 'lock'),
      enters('lock-1', 'locked'),
      event('key.turned', { by: 'Ann', keys: ['a'], name: 'lock-1' }),
      event('key.turned', { by: 'Bob', name: 'nobody' }),
      { kind: 'timer', actor: 'lock-1', timer: 'patience' },
    ],
    { ...header, machines: [{ ...lock, timeline: { marks } } as never] },
  );
  expect(laneNamed(lanes, 'lock-1').marks).toMatchObject([{ kind: 'change', title: 'Ann turns 1 key' }]);
  expect(laneNamed(lanes, 'program').marks.map(({ title }) => title)).toEqual(['Bob turns 0 keys', 'Nobody came']);
});

test('each machine of chartpilot defines the lanes of its actors', () => {
  const charts = [...machinesOf(agentMachine), ...machinesOf(...discoveryProgramMachines)].map(statechartOf);
  expect(charts.filter(({ timeline }) => timeline?.lane === undefined).map(({ id }) => id)).toEqual([]);
});

test('a mark of a merged trace is on the lane of its own program', () => {
  const failureEvent = event(
    'epoch.failed',
    { name: 'epoch-0', during: 'serving', reason: 'x' },
    'b:epoch-0',
    'b:supervisor',
  );
  const lanes = lanesOf([spawn('a:epoch-0', 'epoch'), spawn('b:epoch-0', 'epoch'), failureEvent]);
  expect(lanes.lanes.map(({ name, marks }) => [name, marks.length])).toEqual([
    ['a:epoch-0', 0],
    ['b:epoch-0', 1],
  ]);
});
