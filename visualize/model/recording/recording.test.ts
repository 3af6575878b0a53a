import { expect, test, vi } from 'vitest';
import { parseDiagram } from '../../../src/debugger/diagram/parse.ts';
import type { TraceBody, TraceRecord } from '../../../src/runtime/trace/trace.ts';
import { TraceState } from '../../../src/runtime/trace/trace-state.ts';
import { headerWith } from '../../../test/fixtures/trace-header.ts';
import { recentlyEnded } from './recently-ended.ts';
import { PageRecording } from './recording.ts';

const header = headerWith();

/** Records, the i-th with the number 10 + 2 i at i × 100 ms. */
function stamped(bodies: readonly TraceBody[]): TraceRecord[] {
  return bodies.map((body, i) => ({ seq: 10 + 2 * i, t: i * 100, ...body }) as TraceRecord);
}

function recordingOf(
  bodies: readonly TraceBody[],
  diagrams: ConstructorParameters<typeof PageRecording>[1] = [],
): PageRecording {
  const recording = new PageRecording(header, diagrams);
  recording.append(stamped(bodies));
  return recording;
}

const spawn = (actor: string): TraceBody => ({ kind: 'spawn', actor, machine: 'm' });
const enters = (actor: string, to: string, n = 0): TraceBody => ({
  kind: 'transition',
  actor,
  from: '',
  to,
  on: 'e',
  change: [{ path: '/n', value: n }],
});
const eventTo = (to: string, type: string, cause?: number): TraceBody => ({
  kind: 'event',
  from: 'a',
  to,
  event: { type },
  ...(cause !== undefined && { cause }),
});
const log = (text: string): TraceBody => ({ kind: 'log', actor: 'a/process', level: 'info', text });

test('the state at a position is the result of all records up to it, regardless of the order of requests', () => {
  const bodies = [spawn('a'), ...Array.from({ length: 2_300 }, (_, i) => enters('a', `s${i % 7}`, i))];
  const recording = recordingOf(bodies);
  const folded = (index: number): unknown => {
    const state = TraceState.of(header);
    for (const record of stamped(bodies).slice(0, index + 1)) state.apply(record);
    return [...state.actors.values()];
  };
  for (const index of [-1, 0, 2_300, 1_200, 1_199, 1_201, 499, 500, 501, 498, 1_000, 2_299, 2_300, 3, 700, 650]) {
    expect([...recording.stateAt(index).actors.values()], `at ${index}`).toEqual(folded(index));
  }
});

test('different positions have different state objects, even after the trace has grown', () => {
  const recording = recordingOf([spawn('a')]);
  const previousState = recording.stateAt(0);
  recording.append([{ seq: 99, t: 999, ...enters('a', 'live') } as TraceRecord]);
  expect(recording.stateAt(0)).toBe(previousState);
  expect(recording.stateAt(0).actors.get('a')?.state).toBe('');
  expect(recording.stateAt(1).actors.get('a')?.state).toBe('live');
});

test('a record is found by its number, and a position by its time', () => {
  const recording = recordingOf([spawn('a'), spawn('b'), spawn('c')]);
  expect([10, 11, 12, 14, 15].map((seq) => recording.indexOf(seq))).toEqual([0, undefined, 1, 2, undefined]);
  expect([-1, 0, 99, 100, 5_000].map((t) => recording.placeAt(t))).toEqual([-1, 0, 0, 1, 2]);
});

test('a recording returns the time at which an actor entered its state, even if an earlier actor had the same name', () => {
  const recording = recordingOf([
    spawn('a'),
    enters('a', 'x'),
    log('-'),
    { kind: 'stop', actor: 'a', status: 'done' },
    spawn('a'),
    log('-'),
  ]);
  expect([0, 2, 5].map((index) => recording.stateEnteredAt('a', index))).toEqual([0, 100, 400]);
  expect(recording.stateEnteredAt('b', 5)).toBeUndefined();
});

test('a recording returns the consequences of a record', () => {
  const recording = recordingOf([
    eventTo('b', 'go'),
    { ...enters('b', 'x'), cause: 10 } as TraceBody,
    eventTo('c', 'went', 10),
    eventTo('d', 'other', 12),
  ]);
  expect(recording.consequencesOf(10)).toEqual([1, 2]);
  expect(recording.consequencesOf(14)).toEqual([]);
});

test('log lines are found by their time', () => {
  const recording = recordingOf([log('0'), spawn('a'), log('200'), log('300')]);
  expect(recording.logsBetween(100, 300)).toEqual([2, 3]);
  expect(recording.logsBetween(0, 0)).toEqual([0]);
  expect(recording.logsBetween(301, 900)).toEqual([]);
});

test('deviations are found by their index, and by stepping from one to the next', () => {
  const diagram = parseDiagram(
    'sequenceDiagram\n  participant a\n  participant b\n  a->>b: go.on\n  b->>a: went.on\n',
    'd.mmd',
  );
  const undeclaredEvent = eventTo('b', 'not.declared');
  const recording = recordingOf(
    [
      eventTo('b', 'go.on'),
      undeclaredEvent,
      { kind: 'event', from: 'b', to: 'a', event: { type: 'went.on' } },
      undeclaredEvent,
    ],
    [diagram],
  );
  expect(recording.deviations.map(({ index }) => index)).toEqual([1, 3]);
  expect(recording.deviationsAt(1)).toMatchObject([{ kind: 'undeclared' }]);
  expect(recording.deviationsAt(2)).toEqual([]);
  expect([-1, 0, 1, 3].map((index) => recording.nextDeviation(index, 1))).toEqual([1, 1, 3, undefined]);
  expect([4, 3, 1, 0].map((index) => recording.nextDeviation(index, -1))).toEqual([3, 1, undefined, undefined]);
  expect(recording.lanes.lanes.find(({ name }) => name === 'departures')?.marks.map(({ index }) => index)).toEqual([
    1, 3,
  ]);
});

test('an ended chart is briefly shown, but not an effect or a restarted chart', () => {
  const stop = (actor: string): TraceBody => ({ kind: 'stop', actor, status: 'stopped' });
  const recording = recordingOf([
    spawn('a'),
    spawn('b'),
    stop('a'),
    stop('b'),
    stop('b/process'),
    spawn('b'),
    ...Array.from({ length: 12 }, () => log('-')),
  ]);
  expect(recentlyEnded(recording, 3).map(({ actor }) => actor)).toEqual(['a', 'b']);
  expect(recentlyEnded(recording, 5)).toEqual([{ actor: 'a', status: 'stopped' }]);
  expect(recentlyEnded(recording, 17)).toEqual([]);
});

test('missing records are counted at their position', () => {
  const recording = new PageRecording(header);
  const at = (seq: number): TraceRecord => ({ seq, t: seq, ...spawn(`a-${seq}`) }) as TraceRecord;
  recording.append([at(1), at(2), at(5)]);
  recording.append([at(6), at(16)]);
  expect(recording.gaps).toEqual([
    { index: 2, missingCount: 2 },
    { index: 4, missingCount: 9 },
  ]);
});

test('the cached states have no more entries than the trace has records, regardless of how many actors run', () => {
  const recording = new PageRecording(header);
  const copies = vi.spyOn(TraceState.prototype, 'copy');
  const actors = 4_000;
  recording.append(stamped([...Array(actors).keys()].map((i) => spawn(`a-${i}`))));
  for (let round = 0; round < 5; round++) {
    const bodies = [...Array(actors).keys()].map((i) => enters(`a-${i}`, `s-${round}`));
    const from = recording.seqAt(recording.length - 1)! + 1;
    recording.append(stamped(bodies).map((record, i) => ({ ...record, seq: from + i })));
  }
  const entries = copies.mock.results.reduce((sum, { value }) => sum + (value as TraceState).actors.size, 0);
  copies.mockRestore();
  expect(entries).toBeLessThanOrEqual(recording.length);
  // The requested place is still near a cached state.
  const applySpy = vi.spyOn(TraceState.prototype, 'apply');
  expect(recording.stateAt(18_765).actors.get('a-2765')?.state).toBe('s-3');
  expect(recording.stateAt(9_999).actors.get('a-1999')?.state).toBe('s-1');
  expect(applySpy.mock.calls.length).toBeLessThanOrEqual(2 * actors);
  applySpy.mockRestore();
});

test('only the first of several backward steps far from a cached state replays all records in between', () => {
  const recording = new PageRecording(header);
  recording.append(stamped([...Array(60_000).keys()].map((i) => spawn(`a-${i}`))));
  const applySpy = vi.spyOn(TraceState.prototype, 'apply');
  const cost = (recordIndex: number): number => {
    applySpy.mockClear();
    expect(recording.stateAt(recordIndex).actors.size).toBe(recordIndex + 1);
    return applySpy.mock.calls.length;
  };
  expect(cost(50_000)).toBeGreaterThan(5_000);
  for (let recordIndex = 49_999; recordIndex > 49_980; recordIndex--)
    expect(cost(recordIndex)).toBeLessThanOrEqual(1_000);
  applySpy.mockRestore();
});

test('findings are collected while the recording is being read', () => {
  const recording = recordingOf([
    spawn('agent'),
    { kind: 'event', from: 'supervisor', to: 'status', event: { type: 'serving.began', name: 'epoch-0' } },
  ]);
  expect(recording.findings.findings).toMatchObject([{ rule: 'restart', weight: 'fine' }]);
});
