import { expect, test, vi } from 'vitest';
import { RecordArray } from '../../../src/debugger/trace/record-list.ts';
import type { TraceBody, TraceRecord } from '../../../src/runtime/trace/trace.ts';
import { RecordStore } from './record-store.ts';

const actors = ['supervisor', 'epoch-0', 'epoch-0/process', '__proto__', 'größe'];

/** Records of all kinds, with some `seq` numbers missing. */
function someRecords(count: number): TraceRecord[] {
  let seq = 0;
  return Array.from({ length: count }, (_, i) => {
    seq += i % 97 === 96 ? 3 : 1;
    return { seq, t: 1.5 * i, ...bodyOf(i, seq) } as TraceRecord;
  });
}

function bodyOf(i: number, seq: number): TraceBody {
  const actor = actors[i % actors.length]!;
  const cause = seq - (i % 5);
  switch (i % 7) {
    case 0:
      return { kind: 'spawn', actor, ...(i % 2 === 0 && { parent: 'supervisor' }), machine: 'm' };
    case 1:
      return { kind: 'event', from: 'outside', to: actor, event: { type: `told-${i % 3}`, constructor: '😀' }, cause };
    case 2:
      return { kind: 'transition', actor, from: 'a', to: 'b', on: 'x', cause };
    case 3:
      return { kind: 'timer', actor, timer: 'backoff' };
    case 4:
      return { kind: 'log', actor, level: 'info', text: `line\n${i}` };
    case 5:
      return { kind: 'step', actor, on: 'x', cause, change: [{ path: '/__proto__', value: 1 }] };
    default:
      return { kind: 'stop', actor, status: i % 2 === 0 ? 'done' : 'stopped' };
  }
}

function stored(records: readonly TraceRecord[]): RecordStore {
  const store = new RecordStore({});
  for (const record of records) store.append(structuredClone(record), JSON.stringify(record));
  return store;
}

test('a stored record is returned from any position', () => {
  const records = someRecords(5_000);
  const store = stored(records);
  expect(store.length).toBe(5_000);
  for (let index = 0; index < 5_000; index++) {
    expect(store.recordAt(index)).toEqual(records[index]);
    expect(store.lineAt(index)).toBe(JSON.stringify(records[index]));
  }
  // Cached first records were evicted.
  for (const index of [0, 4_096, 0, 255, 256, 4_999]) expect(store.recordAt(index)).toEqual(records[index]);
  expect([store.recordAt(-1), store.recordAt(5_000)]).toEqual([undefined, undefined]);
});

test('the columns contain the same data as the records', () => {
  const records = someRecords(3_000);
  const store = stored(records);
  const array = new RecordArray(records);
  for (const [index, record] of records.entries()) {
    const { seq, t, kind } = record;
    expect([store.seqAt(index), store.timeAt(index), store.kindAt(index)]).toEqual([seq, t, kind]);
    expect(store.subjectAt(index)).toBe(record.kind === 'event' ? record.to : record.actor);
    expect(store.typeAt(index)).toBe(
      record.kind === 'event'
        ? record.event.type
        : 'on' in record
          ? record.on
          : 'timer' in record
            ? record.timer
            : undefined,
    );
    expect(store.indexOf(seq)).toBe(index);
    if (record.kind === 'event') expect(store.otherActorAt(index)).toBe(record.from);
    if (record.kind === 'spawn') expect(store.otherActorAt(index)).toBe(record.parent ?? 'outside');
  }
  for (const seq of [-1, 0, 97, 98, 9_999_999]) expect(store.indexOf(seq)).toBe(array.indexOf(seq));
  for (const actor of [...actors, 'nobody']) {
    for (const beforeIndex of [0, 1, 700, 2_999, 3_000, 9_999]) {
      for (const from of [0, 650]) {
        expect(store.lastIndexAbout(actor, ['step', 'spawn'], beforeIndex, from)).toBe(
          array.lastIndexAbout(actor, ['step', 'spawn'], beforeIndex, from),
        );
      }
      expect(store.lastIndexAbout(actor, ['transition'], beforeIndex)).toBe(
        array.lastIndexAbout(actor, ['transition'], beforeIndex),
      );
      const next = records.findIndex((one, at) => at > beforeIndex && one.kind === 'step' && one.actor === actor);
      expect(store.nextIndexAbout(actor, ['step'], beforeIndex)).toBe(next < 0 ? undefined : next);
    }
  }
});

test('records are found by their cause, even if the cause is their own number, a later one or a missing one', () => {
  const records = someRecords(3_000);
  const store = stored([
    ...records,
    ...[80_000, 80_001, 80_002, 80_003].map(
      (seq): TraceRecord => ({ seq, t: 1, kind: 'effect', actor: 'a', effect: 'x', cause: 1 }),
    ),
    { seq: 90_000, t: 1, kind: 'effect', actor: 'a', effect: 'x', cause: 90_002 },
    { seq: 90_001, t: 1, kind: 'effect', actor: 'a', effect: 'x', cause: 89_999 },
    { seq: 90_002, t: 1, kind: 'effect', actor: 'a', effect: 'x', cause: 90_002 },
    { seq: 90_003, t: 1, kind: 'effect', actor: 'a', effect: 'x', cause: 90_002 },
  ]);
  for (const { seq } of records) {
    const led = records.flatMap((record, at) => ('cause' in record && record.cause === seq ? [at] : []));
    expect(store.consequencesOf(seq)).toEqual(seq === 1 ? [...led, 3_000, 3_001, 3_002, 3_003] : led);
  }
  expect(store.consequencesOf(90_002)).toEqual([3_004, 3_006, 3_007]);
  expect(store.consequencesOf(5_000_000)).toEqual([]);
});

test('the other actor of a message is its sender, or the receiver of a final output', () => {
  const store = stored([
    { seq: 1, t: 0, kind: 'spawn', actor: 'root' },
    { seq: 2, t: 0, kind: 'spawn', actor: 'child', parent: 'root' },
    { seq: 3, t: 0, kind: 'event', from: 'child', to: 'root', event: { type: 'x' } },
    { seq: 4, t: 0, kind: 'timer', actor: 'root', timer: 't' },
    { seq: 5, t: 0, kind: 'transition', actor: 'root', from: '', to: 'a', on: 'x' },
    { seq: 6, t: 0, kind: 'stop', actor: 'child', status: 'done' },
    { seq: 7, t: 0, kind: 'stop', actor: 'root', status: 'stopped' },
  ]);
  expect([0, 1, 2, 3, 4, 5, 6].map((index) => store.otherActorAt(index))).toEqual([
    'outside',
    'root',
    'child',
    undefined,
    undefined,
    'root',
    undefined,
  ]);
});

test('the record with which an actor entered its state is found in constant time, regardless of how many steps followed', () => {
  const steps = Array.from(
    { length: 20_000 },
    (_, i): TraceRecord => ({ seq: i + 3, t: i, kind: 'step', actor: 'a', on: 'x' }),
  );
  const store = stored([
    { seq: 1, t: 0, kind: 'spawn', actor: 'a', machine: 'm' },
    { seq: 2, t: 0, kind: 'transition', actor: 'a', from: '', to: 'x', on: 'xstate.init' },
    ...steps,
  ]);
  const kindReads = vi.spyOn(RecordStore.prototype, 'kindAt');
  expect(store.lastIndexAbout('a', ['spawn', 'transition'], 20_000)).toBe(1);
  expect(store.nextIndexAbout('a', ['transition'], 5)).toBeUndefined();
  expect(kindReads.mock.calls.length).toBeLessThan(10);
  kindReads.mockRestore();
});
