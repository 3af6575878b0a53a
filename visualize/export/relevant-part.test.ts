import { expect, test } from 'vitest';
import type { TraceBody } from '../../src/runtime/trace/trace.ts';
import { headerWith } from '../../test/fixtures/trace-header.ts';
import { PageRecording } from '../model/recording/recording.ts';
import { partInformationOf, relevantPart } from './relevant-part.ts';

/** Thousands of events; `causes` maps a record to its cause. */
function recordingWith(causes: Readonly<Record<number, number>>, count = 20_000): PageRecording {
  const recording = new PageRecording(headerWith());
  recording.append(
    Array.from({ length: count }, (_, i) => {
      const cause = causes[i + 1];
      const body: TraceBody = { kind: 'event', from: 'a', to: 'b', event: { type: 'x' } };
      return { ...body, seq: i + 1, t: i, ...(cause !== undefined && { cause }) };
    }),
  );
  return recording;
}

test('the part for a record spans from its first cause to its consequences, with a margin', () => {
  const recording = recordingWith({ 10000: 9_500, 9500: 8_000, 10100: 10_000 });
  const { first, last } = relevantPart(recording, 9_999, []);
  expect([first, last]).toEqual([7_999 - 20, 10_099 + 20]);
});

test('the part for a record includes the range of a finding that contains it, but no other findings', () => {
  const recording = recordingWith({});
  const earlierFinding = { range: [4_900, 5_200], root: 4_000 } as const;
  const laterFinding = { range: [5_000, 5_900] } as const;
  expect(relevantPart(recording, 4_950, [earlierFinding, laterFinding])).toEqual({ first: 3_980, last: 5_220 });
  // A restart that ends after the finding's record.
  expect(relevantPart(recording, 5_000, [earlierFinding, laterFinding])).toEqual({ first: 3_980, last: 5_920 });
  expect(relevantPart(recording, 7_000, [earlierFinding, laterFinding])).toEqual({ first: 6_980, last: 7_020 });
});

test('the part for a record is small enough for an email, and within the trace', () => {
  const recording = recordingWith({ 20000: 1, 6000: 101 });
  expect(relevantPart(recording, 19_999, [])).toEqual({ first: 14_999, last: 19_999 });
  expect(relevantPart(recording, 100, []).last).toBe(5_100);
  expect(relevantPart(recording, -1, [])).toEqual({ first: 0, last: 19 });
  expect(relevantPart(recordingWith({}, 1), 0, [])).toEqual({ first: 0, last: 0 });
});

test('a part has the findings of the complete trace with adjusted indexes, and the complete trace is not a part', () => {
  const recording = recordingWith({}, 100);
  const finding = { rule: 'r', weight: 'bad', sentence: 's' } as const;
  const all = [
    { ...finding, index: 5, range: [5, 5] },
    { ...finding, index: 30, range: [5, 30], root: 5 },
    { ...finding, index: 40, range: [35, 90], root: 36 },
  ] as const;
  expect(partInformationOf(recording, { first: 20, last: 49 }, all, undefined)).toEqual({
    of: 100,
    verdicts: [
      { ...finding, index: 10, range: [0, 10] },
      { ...finding, index: 20, range: [15, 29], root: 16 },
    ],
  });
  expect(partInformationOf(recording, { first: 0, last: 99 }, all, undefined)).toBeUndefined();
  expect(partInformationOf(recording, { first: 0, last: 99 }, [], { of: 345, verdicts: [] })).toEqual({
    of: 345,
    verdicts: [],
  });
});
