import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { header, randomRecords, recordsOf } from '../../../test/fixtures/random-records.ts';
import { cpuMs } from '../../../test/harness/cpu-time.ts';
import type { ActorSnapshot, ContextChange, TraceBody, TraceRecord } from './trace.ts';
import { applyChanges, changesOf, isActiveState, maxRunningTimers, TraceState, valueAt } from './trace-state.ts';

function stateAfter(...bodies: TraceBody[]): TraceState {
  const state = TraceState.of({});
  for (const record of recordsOf(bodies)) state.apply(record);
  return state;
}

const spawn = (actor: string): TraceBody => ({ kind: 'spawn', actor, parent: 'agent', machine: 'epoch' });
const become = (actor: string, to: string): TraceBody => ({ kind: 'transition', actor, from: '', to, on: 'e' });
const start = (timer: string, state: string): TraceBody => ({
  kind: 'timer-started',
  actor: 'epoch-0',
  timer,
  state,
  ms: 100,
});

test('the state of an actor exists from its spawn to its end, with its context', () => {
  const change = [{ path: '', value: { epoch: 0 } }];
  const state = stateAfter(spawn('epoch-0'), { ...become('epoch-0', 'live'), change } as TraceBody, spawn('epoch-1'));
  expect([...state.actors.values()]).toMatchObject([
    { actor: 'epoch-0', parent: 'agent', machine: 'epoch', state: 'live', context: { epoch: 0 }, spawned: 1 },
    { actor: 'epoch-1', state: '', spawned: 3 },
  ]);
  state.apply({ seq: 4, t: 3, kind: 'stop', actor: 'epoch-0', status: 'done' });
  expect([...state.actors.keys()]).toEqual(['epoch-1']);
});

test('a reused name in the trace denotes a new actor, at the position of its own spawn', () => {
  const state = stateAfter(spawn('epoch-0'), become('epoch-0', 'live'), spawn('epoch-1'), spawn('epoch-0'));
  expect([...state.actors.values()]).toMatchObject([{ actor: 'epoch-1' }, { actor: 'epoch-0', state: '', spawned: 4 }]);
});

test('a timer in the state of a trace runs until it elapses or its state is left', () => {
  const timers = (...bodies: TraceBody[]): (string | undefined)[] | undefined =>
    stateAfter(spawn('epoch-0'), ...bodies)
      .actors.get('epoch-0')
      ?.timers?.map(({ timer }) => timer);
  const runningActors = [start('due', 'running'), start('healthy', 'running.live')];
  expect(timers(...runningActors, become('epoch-0', 'running.live'))).toEqual(['due', 'healthy']);
  expect(timers(...runningActors, become('epoch-0', 'running.draining'))).toEqual(['due']);
  expect(timers(...runningActors, { kind: 'timer', actor: 'epoch-0', timer: 'due' })).toEqual(['healthy']);
  expect(timers(...runningActors, start('due', 'running'))).toEqual(['healthy', 'due']);
  expect(timers(...runningActors, become('epoch-0', 'gone'))).toEqual([]);
});

test('records about unknown actors do not change the state', () => {
  const state = stateAfter(become('nobody', 'live'), start('due', ''), { kind: 'stop', actor: 'x', status: 'done' });
  expect(state.actors.size).toBe(0);
});

test.each([
  ['', 'idle', true],
  ['running', 'running.deciding', true],
  ['running', 'running', true],
  ['run', 'running', false],
  ['b', 'a.x | b.y', true],
  ['b.y', 'a.x | b.y', true],
  ['b.x', 'a.x | b.y', false],
])('isActiveState returns for the state %j in %j the result %s', (path, active, expected) => {
  expect(isActiveState(path, active)).toBe(expected);
});

describe('the recorded changes of a context', () => {
  const contexts = fc.dictionary(
    fc.oneof(fc.constantFrom('a', 'b', 'a/b', '~'), fc.string()).filter((key) => key !== '__proto__'),
    fc.oneof(
      fc.integer(),
      fc.array(fc.integer(), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('x', 'y/z', '~1'), fc.integer()),
    ),
  );

  test('result in the next context when applied to the previous one, for any contexts', () => {
    fc.assert(
      fc.property(contexts, contexts, (previous, next) => {
        const frozen = JSON.stringify(previous);
        expect(applyChanges(previous, changesOf(previous, next))).toEqual(next);
        expect(JSON.stringify(previous)).toBe(frozen);
      }),
    );
  });

  test('are the fields with a different value by path, and lists are compared as units', () => {
    expect(changesOf({ a: { b: 1, c: 1 }, list: [1], gone: 1 }, { a: { b: 2, c: 1 }, list: [1, 2] })).toEqual([
      { path: '/a/b', value: 2 },
      { path: '/list', value: [1, 2] },
      { path: '/gone' },
    ]);
  });

  test('do not contain a recreated list with the same items', () => {
    expect(changesOf({ list: [{ a: [1] }] }, { list: [{ a: [1] }] })).toEqual([]);
    expect(changesOf({ list: [{ a: [1] }] }, { list: [{ a: [2] }] })).toHaveLength(1);
    expect(changesOf({ list: [1, 2] }, { list: [2, 1] })).toHaveLength(1);
  });
});

test('a fold of a trace can stop at any record and continue from its state, and later records do not affect a copy', () => {
  fc.assert(
    fc.property(randomRecords, fc.nat(60), (records, cutIndex) => {
      const wholeState = foldAll(header, records);
      const first = foldAll(header, records.slice(0, cutIndex));
      const copy = first.copy();
      const previous = JSON.stringify([...first.actors]);
      for (const record of records.slice(cutIndex)) copy.apply(record);
      expect([...copy.actors]).toEqual([...wholeState.actors]);
      expect(JSON.stringify([...first.actors])).toBe(previous);
      const resumed = TraceState.of({ actors: [...first.actors.values()] });
      for (const record of records.slice(cutIndex)) resumed.apply(record);
      expect([...resumed.actors]).toEqual([...wholeState.actors]);
    }),
    { numRuns: 200 },
  );
});

function foldAll(from: Parameters<typeof TraceState.of>[0], records: readonly TraceRecord[]): TraceState {
  const state = TraceState.of(from);
  for (const record of records) state.apply(record);
  return state;
}

test('a change of a large context costs as much as one of a small context, and leaves an earlier state unchanged', () => {
  const fields = 20_000;
  const wideOps = Array.from({ length: fields }, (_, i) => ({ path: `/k${i}`, value: 0 }));
  const state = stateAfter(spawn('epoch-0'));
  const change = (changes: ContextChange[]): void =>
    state.apply({ seq: 1, t: 1, kind: 'step', actor: 'epoch-0', on: 'e', change: changes });
  const cost = cpuMs(() => {
    change(wideOps);
    for (let i = 0; i < fields; i++) change([{ path: `/k${i}`, value: { n: 1 } }]);
  });
  expect(cost).toBeLessThan(2_000);
  const n = (snapshot: ActorSnapshot | undefined): unknown => valueAt(snapshot?.context, '/k7/n');
  // A retained snapshot and a copy of the state are unchanged.
  const retainedActor = state.actors.get('epoch-0');
  change([{ path: '/k7/n', value: 2 }]);
  const copy = state.copy();
  change([{ path: '/k7/n', value: 3 }]);
  expect(n(copy.actors.get('epoch-0'))).toBe(2);
  copy.apply({ seq: 1, t: 1, kind: 'step', actor: 'epoch-0', on: 'e', change: [{ path: '/k7/n', value: 4 }] });
  expect([retainedActor, state.actors.get('epoch-0'), copy.actors.get('epoch-0')].map(n)).toEqual([1, 3, 4]);
});

test('the state of a trace contains a limited number of running timers per actor: the most recently started ones', () => {
  const names = Array.from({ length: maxRunningTimers + 5 }, (_, i) => `timer ${i}`);
  const state = stateAfter(spawn('epoch-0'), ...names.map((name) => start(name, 'live')));
  const timers = state.actors.get('epoch-0')?.timers?.map(({ timer }) => timer);
  expect(timers).toEqual(names.slice(5));
});
