import { expect, test } from 'vitest';
import type { TraceBody } from '../../src/runtime/trace/trace.ts';
import { headerWith } from '../../test/fixtures/trace-header.ts';
import { PageRecording } from '../model/recording/recording.ts';
import { stepsBefore, takenTransitionsAt } from './chart-steps.ts';

const traceBodies: TraceBody[] = [
  { kind: 'spawn', actor: 'a', machine: 'm' },
  { kind: 'transition', actor: 'a', from: '', to: 'off', on: 'xstate.init', cause: 1 },
  { kind: 'event', from: 'outside', to: 'a', event: { type: 'go' } },
  { kind: 'transition', actor: 'a', from: 'off', to: 'on', on: 'go', cause: 3, taken: [5] },
  { kind: 'step', actor: 'a', on: 'go', cause: 3, taken: [6] },
  { kind: 'effect', actor: 'a', effect: 'ring', cause: 3 },
  { kind: 'event', from: 'outside', to: 'b', event: { type: 'other' } },
  { kind: 'stop', actor: 'a', status: 'done' },
  { kind: 'spawn', actor: 'a', machine: 'n' },
];

test('the transitions of a step are those of its record', () => {
  expect(at(3)).toEqual({ currentNumbers: [5], previousNumbers: [5] });
  expect(at(4)).toEqual({ currentNumbers: [6], previousNumbers: [6] });
});

test('a record with the same cause as the last step shows the transitions of that step', () => {
  expect(at(5)).toEqual({ currentNumbers: [6], previousNumbers: [6] });
});

test('a record with another cause shows only the step that led to the current state', () => {
  expect(at(6)).toEqual({ currentNumbers: [], previousNumbers: [6] });
});

test('an actor has none of the transitions of an earlier actor with the same name', () => {
  expect(at(8, 9)).toEqual({ currentNumbers: [], previousNumbers: [] });
});

test('the machine of an ended actor is that of the last actor with the same name', () => {
  const recording = recordingOf(traceBodies.slice(0, 8));
  expect(recording.machineOf('a')).toBe('m');
  recording.append([{ ...traceBodies[8]!, seq: 9, t: 9 }]);
  expect(recording.machineOf('a')).toBe('n');
  expect(recording.machineOf('b')).toBeUndefined();
});

test('appended steps are found, newest first', () => {
  const recording = recordingOf(traceBodies.slice(0, 4));
  recording.append([{ ...traceBodies[4]!, seq: 5, t: 5 }]);
  expect([...stepsBefore(recording, 'a', 99)].map(({ index }) => index)).toEqual([4, 3, 1]);
});

function at(recordIndex: number, spawnIndex = 1): ReturnType<typeof takenTransitionsAt> {
  return takenTransitionsAt(recordingOf(traceBodies), 'a', spawnIndex, recordIndex);
}

function recordingOf(bodies: readonly TraceBody[]): PageRecording {
  const recording = new PageRecording(headerWith());
  recording.append(bodies.map((body, i) => ({ ...body, seq: i + 1, t: i })));
  return recording;
}
