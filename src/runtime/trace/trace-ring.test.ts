import fc from 'fast-check';
import { expect, test } from 'vitest';
import { header, randomRecords, recordsOf } from '../../../test/fixtures/random-records.ts';
import type { TraceHeader, TraceRecord } from './trace.ts';
import { TraceRing } from './trace-ring.ts';
import { TraceState } from './trace-state.ts';

const logs = (count: number): TraceRecord[] =>
  recordsOf(Array.from({ length: count }, () => ({ kind: 'log', actor: 'a', level: 'info', text: '' })));

function ringWith(capacity: number, records: readonly TraceRecord[]): TraceRing {
  const ring = new TraceRing(capacity);
  ring.write(header);
  for (const record of records) ring.write(record);
  return ring;
}

function fold(header: Pick<TraceHeader, 'actors'>, records: readonly TraceRecord[]): unknown[] {
  const state = TraceState.of(header);
  for (const record of records) state.apply(record);
  return [...state.actors.values()];
}

const numbers = (records: readonly TraceRecord[] | undefined): number[] | undefined => records?.map(({ seq }) => seq);

test('the trace ring keeps the last records, and returns them from any record onwards', () => {
  const ring = ringWith(4, logs(11));
  expect([ring.seqBeforeOldest, ring.nextSeq]).toEqual([7, 11]);
  expect(numbers(ring.recordsAfter(7, 100))).toEqual([8, 9, 10, 11]);
  expect(numbers(ring.recordsAfter(8, 2))).toEqual([9, 10]);
  expect(numbers(ring.recordsAfter(11, 100))).toEqual([]);
  expect(ring.recordsAfter(6, 100)).toBeUndefined();
});

test('an empty trace ring begins with the first record', () => {
  const ring = ringWith(4, []);
  expect([ring.seqBeforeOldest, ring.nextSeq, ring.recordsAfter(0, 10)]).toEqual([0, 0, []]);
  expect(ring.header()).toEqual(header);
  expect(new TraceRing(4).header()).toBeUndefined();
});

test('the trace ring notifies listeners of every record until they stop', () => {
  const ring = ringWith(4, []);
  const receivedEnds: number[] = [];
  const stop = ring.listen(() => receivedEnds.push(ring.nextSeq));
  for (const record of logs(3)) ring.write(record);
  stop();
  ring.write({ ...logs(1)[0]!, seq: 4 });
  expect(receivedEnds).toEqual([1, 2, 3]);
});

test('the header and the remaining records of a trace ring result in the same state as all records, regardless of how many were dropped', () => {
  fc.assert(
    fc.property(randomRecords, fc.integer({ min: 1, max: 20 }), (records, capacity) => {
      const ring = ringWith(capacity, records);
      const [first, ...retainedRecords] = ring.lines();
      expect(retainedRecords).toEqual(records.slice(-capacity));
      expect(first).toEqual(ring.header());
      expect(fold(ring.header()!, retainedRecords as TraceRecord[])).toEqual(fold(header, records));
    }),
    { numRuns: 300 },
  );
});

test('a trace ring that begins with actors of an earlier part lists them in its header', () => {
  const ring = new TraceRing(2);
  const actors = [{ actor: 'agent', state: 'idle', spawned: 1, spawnedAt: 0 }];
  ring.write({ ...header, actors });
  ring.write({ seq: 9, t: 0, kind: 'transition', actor: 'agent', from: 'idle', to: 'running', on: 'e' });
  expect([ring.seqBeforeOldest, ring.header()?.actors]).toEqual([8, actors]);
});
