import { expect, test } from 'vitest';
import type { TraceBody, TraceRecord } from '../../src/runtime/trace/trace.ts';
import { valueAt } from '../../src/runtime/trace/trace-state.ts';
import { headerWith } from '../../test/fixtures/trace-header.ts';
import { changesOf } from './context-change.ts';
import { missingDefinitionReason, momentAt, nearbyLogs } from './moment.ts';
import { PageRecording } from './recording/recording.ts';

const header = headerWith({
  machines: [
    {
      id: 'door',
      states: [
        { path: '', type: 'compound', description: 'A door.' },
        { path: 'closed', type: 'atomic', parent: 0, description: 'Nobody gets through.' },
        { path: 'open', type: 'atomic', parent: 0, description: 'Anybody does.' },
      ],
      transitions: [{ source: 1, targets: [2], kind: 'event', on: 'door.open', actions: ['count'] }],
    },
  ],
});

function recordingOf(...bodies: TraceBody[]): PageRecording {
  const recording = new PageRecording(header);
  recording.append(bodies.map((body, i) => ({ seq: i + 1, t: i * 1_000, ...body }) as TraceRecord));
  return recording;
}

const door: TraceBody[] = [
  { kind: 'spawn', actor: 'door', machine: 'door' },
  {
    kind: 'transition',
    actor: 'door',
    from: '',
    to: 'closed',
    on: 'xstate.init',
    cause: 1,
    change: [{ path: '', value: { opened: 0, by: [] } }],
  },
  { kind: 'event', from: 'outside', to: 'door', event: { type: 'door.open' } },
  { kind: 'event', from: 'door', to: 'bell', event: { type: 'ring' }, cause: 3 },
  {
    kind: 'transition',
    actor: 'door',
    from: 'closed',
    to: 'open',
    on: 'door.open',
    cause: 3,
    taken: [0],
    change: [{ path: '/opened', value: 1 }],
  },
];

test('an event is shown with the states, context and transitions of the receiving chart', () => {
  const moment = momentAt(recordingOf(...door), 2)!;
  expect(moment.actor).toBe('door');
  expect(moment.stepIndexes).toEqual([4]);
  expect([moment.stateBefore?.state, moment.stateAfter?.state]).toEqual(['closed', 'open']);
  expect(moment.takenTransitions.map(({ on }) => on)).toEqual(['door.open']);
  expect(moment.describedStates.map(({ description }) => description)).toEqual(['A door.', 'Anybody does.']);
  expect(changesOf(moment)).toEqual([{ path: '/opened', value: 1 }]);
});

test('steps of other actors with the same cause are not shown as steps of the receiver', () => {
  const recording = recordingOf(...door, { kind: 'step', actor: 'bell', on: 'door.open', cause: 3 });
  expect(recording.consequencesOf(3)).toEqual([3, 4, 5]);
  expect(momentAt(recording, 2)!.stepIndexes).toEqual([4]);
});

test('a transition is shown with its context change, while a record that is not a step has none', () => {
  const recording = recordingOf(...door);
  expect(momentAt(recording, 4)).toMatchObject({ actor: 'door', stepIndexes: [4], changes: [{ path: '/opened' }] });
  expect(momentAt(recording, 3)).toMatchObject({ actor: 'bell', stepIndexes: [], machine: undefined });
  expect(momentAt(recording, -1)).toBeUndefined();
});

test('the initial context is not a change', () => {
  expect(changesOf(momentAt(recordingOf(...door), 1)!)).toEqual([]);
});

test('if a list is replaced, only entries with another value are shown as changes', () => {
  const previous = {
    actor: 'a',
    state: '',
    spawned: 1,
    spawnedAt: 0,
    context: {
      epochs: [
        { name: 'e0', phase: 'live', tags: ['x'] },
        { name: 'e1', phase: 'starting', tags: [] },
      ],
    },
  };
  const next = [
    { name: 'e0', phase: 'leaving', tags: ['x'] },
    { name: 'e1', phase: 'starting', tags: [] },
  ];
  expect(changesOf({ stateBefore: previous, changes: [{ path: '/epochs', value: next }] })).toEqual([
    { path: '/epochs/0/phase', value: 'leaving' },
  ]);
  expect(changesOf({ stateBefore: previous, changes: [{ path: '/epochs', value: next.slice(1) }] })).toEqual([
    { path: '/epochs', value: next.slice(1) },
  ]);
  expect(changesOf({ stateBefore: previous, changes: [{ path: '/epochs', value: [] }, { path: '/epochs' }] })).toEqual([
    { path: '/epochs' },
  ]);
});

test('a JSON Pointer selects its value', () => {
  expect(valueAt({ 'a/b': [{ '~': 1 }] }, '/a~1b/0/~0')).toBe(1);
  expect(valueAt({ a: 1 }, '/a/b')).toBeUndefined();
  expect(valueAt({ a: 1 }, '')).toEqual({ a: 1 });
});

test('log lines within two seconds before and after are listed, the nearest first', () => {
  const log = (text: string): TraceBody => ({ kind: 'log', actor: 'e/process', level: 'info', text });
  const recording = recordingOf(log('0'), log('1'), log('2'), log('3'), log('4'), log('5'));
  const { lines, totalCount: all } = nearbyLogs(recording, 3_200, 3);
  expect(lines.map(({ record, awayMs }) => [record.text, awayMs])).toEqual([
    ['3', -200],
    ['4', 800],
    ['2', -1_200],
  ]);
  expect(all).toBe(4);
});

test('a missing chart is explained: an effect, a machine without a statechart, or a stopped machine', () => {
  const recording = recordingOf(
    ...door,
    { kind: 'stop', actor: 'door', status: 'done' },
    { kind: 'event', from: 'outside', to: 'door', event: { type: 'door.open' } },
    { kind: 'spawn', actor: 'gate', machine: 'gate' },
  );
  const textAt = (index: number): string | undefined => missingDefinitionReason(momentAt(recording, index)!);
  expect(textAt(2)).toBeUndefined();
  expect(textAt(3)).toBe('bell has no statechart: it is an effect, or it is not recorded.');
  expect(momentAt(recording, 6)).toMatchObject({ machineId: 'door', takenTransitions: [], describedStates: [] });
  expect(textAt(6)).toBe('door is not running, so it takes no transition.');
  expect(textAt(7)).toBe('The trace does not contain the statechart of gate.');
});
