import { expect, test } from 'vitest';
import type { TraceBody } from '../../src/runtime/trace/trace.ts';
import { headerWith } from '../../test/fixtures/trace-header.ts';
import { Recording } from '../model/recording.ts';
import { partThatMatters } from './part-that-matters.ts';

/** Events in thousands, and among them two that are the causes of one. */
function recordingWith(causes: Readonly<Record<number, number>>, count = 20_000): Recording {
  const recording = new Recording(headerWith());
  recording.append(
    Array.from({ length: count }, (_, i) => {
      const cause = causes[i + 1];
      const body: TraceBody = { kind: 'event', from: 'a', to: 'b', event: { type: 'x' } };
      return { ...body, seq: i + 1, t: i, ...(cause !== undefined && { cause }) };
    }),
  );
  return recording;
}

test('reaches from the first cause to what it led to, with a little around it', () => {
  const recording = recordingWith({ 10000: 9_500, 9500: 8_000, 10100: 10_000 });
  const { first, last } = partThatMatters(recording, 9_999, undefined);
  expect([first, last]).toEqual([7_999 - 20, 10_099 + 20]);
});

test('holds what the verdict there is about, and not one about another time', () => {
  const recording = recordingWith({});
  const about = { range: [4_900, 5_200], root: 4_000 } as const;
  expect(partThatMatters(recording, 5_000, about)).toEqual({ first: 3_980, last: 5_220 });
  expect(partThatMatters(recording, 7_000, about)).toEqual({ first: 6_980, last: 7_020 });
});

test('is never more than a mail takes, and never leaves the trace', () => {
  const recording = recordingWith({ 20000: 1 });
  expect(partThatMatters(recording, 19_999, undefined)).toEqual({ first: 14_999, last: 19_999 });
  expect(partThatMatters(recording, -1, undefined)).toEqual({ first: 0, last: 19 });
  expect(partThatMatters(recordingWith({}, 1), 0, undefined)).toEqual({ first: 0, last: 0 });
});
