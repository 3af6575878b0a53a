import { expect, test } from 'vitest';
import { maxLineLength } from '../../../src/debugger/trace/line-splitter.ts';
import { headerWith } from '../../../test/fixtures/trace-header.ts';
import { InvalidTraceLine, TraceParser } from './incoming-trace.ts';

const header = headerWith();
const timer = (seq: number): object => ({ seq, t: seq, kind: 'timer', actor: 'supervisor', timer: 'backoff' });
const lines = (...values: object[]): string => values.map((value) => `${JSON.stringify(value)}\n`).join('');
const alwaysContinue = (): boolean => true;

test('a trace is read correctly from chunks of any length', () => {
  const text = lines(header, timer(1), timer(2), timer(3));
  for (const size of [1, 7, 50, 10_000]) {
    const stream = new TraceParser();
    const seqs: number[] = [];
    for (let at = 0; at < text.length; at += size) {
      stream.push(text.slice(at, at + size));
      seqs.push(...stream.read(alwaysContinue).records.map(({ seq }) => seq));
    }
    expect(seqs).toEqual([1, 2, 3]);
    expect(stream.header?.program).toBe('test');
    expect(stream.end().records).toEqual([]);
    expect(stream.cutOffLines).toEqual([]);
  }
});

test('the parser of a trace stops when requested, and continues at the same position', () => {
  const stream = new TraceParser();
  stream.push(lines(header, ...Array.from({ length: 200 }, (_, i) => timer(i + 1))));
  const { records: first } = stream.read(() => false);
  expect(first.length).toBeLessThan(100);
  const { records: restRecords } = stream.read(alwaysContinue);
  expect([...first, ...restRecords].map(({ seq }) => seq)).toEqual(Array.from({ length: 200 }, (_, i) => i + 1));
});

test('an incomplete last line is skipped, and its number is reported', () => {
  const stream = new TraceParser();
  stream.push(`${lines(header, timer(1))}{"seq":2,"t":`);
  expect(stream.read(alwaysContinue).records).toHaveLength(1);
  expect(stream.end().records).toEqual([]);
  expect(stream.cutOffLines).toEqual([3]);
});

test('a last line without newline is a record', () => {
  const stream = new TraceParser();
  stream.push(lines(header, timer(1)) + JSON.stringify(timer(2)));
  expect(stream.read(alwaysContinue).records).toHaveLength(1);
  expect(stream.end().records.map(({ seq }) => seq)).toEqual([2]);
  expect(stream.cutOffLines).toEqual([]);
});

test('an unreadable line is reported with its position after the records before it are returned', () => {
  const stream = new TraceParser();
  stream.push(`${lines(header, timer(1))}oops\n${lines(timer(2))}`);
  expect(stream.read(alwaysContinue).records.map(({ seq }) => seq)).toEqual([1]);
  expect(() => stream.read(alwaysContinue)).toThrow('line 3: the line is not valid JSON');
});

test('a line cut by a full disk, and the missing records after it, are skipped', () => {
  const stream = new TraceParser();
  stream.push(`${lines(header, timer(1))}{"seq":2,"t":\n${lines(timer(4), timer(5))}`);
  expect(stream.read(alwaysContinue).records.map(({ seq }) => seq)).toEqual([1, 4, 5]);
  expect(stream.end().records).toEqual([]);
  expect(stream.cutOffLines).toEqual([3]);
});

test.each([
  ['an unknown version', lines({ ...header, version: 99 }), /line 1: unsupported format version 99/],
  ['a record before the header', lines(timer(1)), /line 1: a timer record comes before the header/],
  [
    'records out of order',
    lines(header, timer(2), timer(1)),
    /line 3: records out of order: record 1 follows record 2/,
  ],
  ['a second header', lines(header, timer(1), { ...header, pid: 2 }), /line 3: second header/],
])('the parser of a trace rejects %s', (_, text, reason) => {
  const stream = new TraceParser();
  stream.push(text);
  const readAll = (): void => {
    while (stream.read(alwaysContinue).records.length > 0);
  };
  expect(readAll).toThrow(InvalidTraceLine);
  const secondParser = new TraceParser();
  secondParser.push(text);
  expect(() => {
    while (secondParser.read(alwaysContinue).records.length > 0);
  }).toThrow(reason);
});

test('the header of a rotated part of the same run is skipped', () => {
  const stream = new TraceParser();
  stream.push(lines(header, timer(1), header, timer(2)));
  expect(stream.read(alwaysContinue).records.map(({ seq }) => seq)).toEqual([1, 2]);
});

test('each record is returned with its text in the current format', () => {
  const stream = new TraceParser();
  stream.push(lines(header, timer(1), timer(2)));
  expect(stream.read(alwaysContinue).lines.map((line) => JSON.parse(line))).toEqual([timer(1), timer(2)]);
  const olderParser = new TraceParser();
  const { level: _, machines: __, ...first } = { ...header, version: 1 };
  const step = { seq: 1, t: 0, kind: 'transition', actor: 'a', from: 'x', to: 'y', cause: 'go' };
  olderParser.push(lines(first, step));
  expect(JSON.parse(olderParser.read(alwaysContinue).lines[0]!)).toEqual({
    seq: 1,
    t: 0,
    kind: 'transition',
    actor: 'a',
    from: 'x',
    to: 'y',
    on: 'go',
  });
});

test('a long line in many chunks is parsed in linear time', () => {
  const text = 'x'.repeat(20_000_000);
  const line = lines({ seq: 1, t: 0, kind: 'log', actor: 'a', level: 'info', text });
  const stream = new TraceParser();
  stream.push(lines(header));
  let records = 0;
  for (let at = 0; at < line.length; at += 2_000) {
    stream.push(line.slice(at, at + 2_000));
    records += stream.read(alwaysContinue).records.length;
  }
  expect(records).toBe(1);
});

test('a line longer than any record is reported before it fills the memory', () => {
  const stream = new TraceParser();
  stream.push(lines(header, timer(1)));
  expect(stream.read(alwaysContinue).records).toHaveLength(1);
  const textChunk = 'x'.repeat(1_000_000);
  let chunkCount = 0;
  expect(() => {
    for (; chunkCount < 100; chunkCount++) {
      stream.push(textChunk);
      stream.read(alwaysContinue);
    }
  }).toThrow('line 3: the line is longer than 64 million characters');
  expect(chunkCount * textChunk.length).toBeLessThan(maxLineLength + 1_000_000);
});

test('an infinite time is invalid', () => {
  const stream = new TraceParser();
  stream.push(`${lines(header)}{"seq":1,"t":1e999,"kind":"timer","actor":"a","timer":"b"}\n`);
  expect(() => stream.read(alwaysContinue)).toThrow("line 2: invalid field 't' of the timer record: Infinity");
});
