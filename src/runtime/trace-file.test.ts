import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { header, randomRecords, recordsOf } from './testing/random-records.ts';
import type { TraceHeader, TraceLine, TraceRecord } from './trace.ts';
import { traceFile } from './trace-file.ts';
import { TraceState } from './trace-state.ts';

function temporaryFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-trace-file-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'a.trace');
}

function read(path: string): { header: TraceHeader; records: TraceRecord[] } {
  const [first, ...records] = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as TraceLine);
  return { header: first as TraceHeader, records: records as TraceRecord[] };
}

function fold(from: TraceHeader, ...parts: TraceRecord[][]): unknown {
  const state = TraceState.of(from);
  for (const record of parts.flat()) state.apply(record);
  // As it is written and read again.
  return JSON.parse(JSON.stringify([...state.actors.values()]));
}

const logs = (count: number): TraceRecord[] =>
  recordsOf(Array.from({ length: count }, (_, i) => ({ kind: 'log', actor: 'a', level: 'info', text: `line ${i}` })));

test('the lines of one turn are written together, only for the owner to read', async () => {
  const path = temporaryFile();
  const file = traceFile(path);
  file.write(header);
  for (const record of logs(2)) file.write(record);
  expect(readFileSync(path, 'utf8')).toBe('');
  await turn();
  expect(read(path)).toEqual({ header, records: logs(2) });
  expect(statSync(path).mode & 0o777).toBe(0o600);
  file.close();
});

test('what is written last is there after closing', () => {
  const path = temporaryFile();
  const file = traceFile(path);
  file.write(header);
  file.write(logs(1)[0]!);
  file.close();
  expect(read(path).records).toHaveLength(1);
});

test('a file that has grown past its limit is set aside, with the one before it replaced', () => {
  const path = temporaryFile();
  const file = traceFile(path, { maxBytes: 2_000 });
  file.write(header);
  for (const record of logs(400)) {
    file.write(record);
    file.flush();
  }
  file.close();
  const [older, newer] = [read(`${path}.1`), read(path)];
  // Two parts, without a gap, and no more.
  expect([...older.records, ...newer.records].map(({ seq }) => seq)).toEqual(
    Array.from({ length: older.records.length + newer.records.length }, (_, i) => older.records[0]!.seq + i),
  );
  expect(newer.records.at(-1)?.seq ?? older.records.at(-1)?.seq).toBe(400);
  expect(statSync(`${path}.1`).size).toBeLessThan(2_500);
  expect(statSync(path).size).toBeLessThan(2_500);
  expect(existsSync(`${path}.2`)).toBe(false);
});

test('wherever it was set aside: the file alone tells what both parts tell', () => {
  fc.assert(
    fc.property(randomRecords, fc.integer({ min: 300, max: 3_000 }), fc.integer({ min: 1, max: 9 }), (...given) => {
      const [records, maxBytes, perTurn] = given;
      const path = temporaryFile();
      const file = traceFile(path, { maxBytes });
      file.write(header);
      records.forEach((record, index) => {
        file.write(record);
        if (index % perTurn === 0) file.flush();
      });
      file.close();
      const newer = read(path);
      const all = fold(header, records);
      expect(fold(newer.header, newer.records)).toEqual(all);
      if (!existsSync(`${path}.1`)) return;
      const older = read(`${path}.1`);
      expect(fold(older.header, older.records, newer.records)).toEqual(all);
      expect(older.records.length + newer.records.length).toBeGreaterThan(0);
    }),
    { numRuns: 100 },
  );
});
