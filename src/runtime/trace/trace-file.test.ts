import { spawn, spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { header, randomRecords, recordsOf } from '../../../test/fixtures/random-records.ts';
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

function fold(from: TraceHeader, ...recordLists: TraceRecord[][]): unknown {
  const state = TraceState.of(from);
  for (const record of recordLists.flat()) state.apply(record);
  // The actors as they are written and read back.
  return JSON.parse(JSON.stringify([...state.actors.values()]));
}

const logs = (count: number): TraceRecord[] =>
  recordsOf(Array.from({ length: count }, (_, i) => ({ kind: 'log', actor: 'a', level: 'info', text: `line ${i}` })));

test('lines of one event loop iteration are written to the trace file together and are readable only by the owner', async () => {
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

test('an existing trace file that others can read becomes private before data is written, while pipes and devices keep their mode', () => {
  const path = temporaryFile();
  writeFileSync(path, 'of an earlier run', { mode: 0o644 });
  traceFile(path).close();
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const pipe = `${path}.pipe`;
  expect(spawnSync('mkfifo', ['-m', '644', pipe]).status).toBe(0);
  traceFile(pipe).close();
  expect(statSync(pipe).mode & 0o777).toBe(0o644);
  const { mode } = statSync('/dev/null');
  traceFile('/dev/null').close();
  expect(statSync('/dev/null').mode).toBe(mode);
});

test('a trace file that is standard output keeps its mode', () => {
  const path = temporaryFile();
  const program = `import { traceFile } from ${JSON.stringify(join(import.meta.dirname, 'trace-file.ts'))}; traceFile('/dev/stdout').close();`;
  const fd = openSync(path, 'w', 0o644);
  onTestFinished(() => closeSync(fd));
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', fd, 'pipe'],
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  expect(status).toBe(0);
  expect(statSync(path).mode & 0o777).toBe(0o644);
});

test('the last lines are written to the trace file before the sink is closed', () => {
  const path = temporaryFile();
  const file = traceFile(path);
  file.write(header);
  file.write(logs(1)[0]!);
  file.close();
  expect(read(path).records).toHaveLength(1);
});

test('a trace file that exceeds its limit is renamed and replaces the previous part', () => {
  const path = temporaryFile();
  const file = traceFile(path, { maxBytes: 2_000 });
  file.write(header);
  for (const record of logs(400)) {
    file.write(record);
    file.flush();
  }
  file.close();
  const [olderTrace, newer] = [read(`${path}.1`), read(path)];
  // Two consecutive parts without a gap.
  expect([...olderTrace.records, ...newer.records].map(({ seq }) => seq)).toEqual(
    Array.from({ length: olderTrace.records.length + newer.records.length }, (_, i) => olderTrace.records[0]!.seq + i),
  );
  expect(newer.records.at(-1)?.seq ?? olderTrace.records.at(-1)?.seq).toBe(400);
  expect(statSync(`${path}.1`).size).toBeLessThan(2_500);
  expect(statSync(path).size).toBeLessThan(2_500);
  expect(existsSync(`${path}.2`)).toBe(false);
});

test('the current trace file results in the same state as both parts together, at any rotation point', () => {
  fc.assert(
    fc.property(randomRecords, fc.integer({ min: 300, max: 3_000 }), fc.integer({ min: 1, max: 9 }), (...args) => {
      const [records, maxBytes, perTurn] = args;
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
      const olderTrace = read(`${path}.1`);
      expect(fold(olderTrace.header, olderTrace.records, newer.records)).toEqual(all);
      expect(olderTrace.records.length + newer.records.length).toBeGreaterThan(0);
    }),
    { numRuns: 100 },
  );
});

describe('a trace file that another program changes', () => {
  const all = logs(400);
  const spawns = recordsOf([{ kind: 'spawn', actor: 'a', machine: 'm' }]);

  test('is replaced after it was moved by a new one that can be read separately', () => {
    const path = temporaryFile();
    const file = traceFile(path, { maxBytes: 2_000 });
    file.write(header);
    for (const record of [...spawns, ...all.slice(1)]) {
      if (record.seq === 10) renameSync(path, `${path}.moved`);
      file.write(record);
      file.flush();
    }
    file.close();
    expect(read(`${path}.moved`).records.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    const { header: last, records } = read(path);
    expect(last.actors).toMatchObject([{ actor: 'a', spawned: 1 }]);
    expect(records.at(-1)!.seq).toBe(400);
  });

  test('begins with a header again after it was truncated', () => {
    const path = temporaryFile();
    const file = traceFile(path);
    file.write(header);
    for (const record of [...spawns, ...all.slice(1, 10)]) {
      if (record.seq === 5) truncateSync(path);
      file.write(record);
      file.flush();
    }
    file.close();
    expect(read(path).header.actors).toMatchObject([{ actor: 'a' }]);
    expect(read(path).records.map(({ seq }) => seq)).toEqual([5, 6, 7, 8, 9, 10]);
  });

  test('is truncated if it cannot be renamed, because disk space is limited', () => {
    const path = temporaryFile();
    mkdirSync(`${path}.1`);
    const file = traceFile(path, { maxBytes: 2_000 });
    file.write(header);
    for (const record of all) {
      file.write(record);
      file.flush();
      expect(statSync(path).size).toBeLessThan(2_500);
    }
    file.close();
    expect(read(path).records.at(-1)!.seq).toBe(400);
  });

  test('has a counted gap while its folder is missing, and continues when the folder exists again', async () => {
    const path = temporaryFile();
    const problems: string[] = [];
    const listener = {
      failed: (error: unknown) => void problems.push((error as Error).message.slice(0, 6)),
      recovered: (loss: { lines: number } | undefined) => void problems.push(`lost ${loss?.lines}`),
    };
    const file = traceFile(path, { listener });
    file.write(header);
    const write = (...records: TraceRecord[]): void => {
      for (const record of records) file.write(record);
      file.flush();
    };
    write(all[0]!);
    rmSync(dirname(path), { recursive: true });
    for (const record of all.slice(1, 100)) write(record);
    expect(problems).toEqual(['ENOENT']);
    mkdirSync(dirname(path));
    await vi.waitFor(() => expect(problems).toEqual(['ENOENT', 'lost 99']), 30_000);
    write(...all.slice(100));
    file.close();
    expect(read(path)).toEqual({ header, records: all.slice(100) });
    expect(problems).toHaveLength(2);
  });

  test('causes no error and no unbounded buffering on a full device', () => {
    const file = traceFile('/dev/full');
    file.write(header);
    const longRecord = recordsOf([{ kind: 'log', actor: 'a', level: 'info', text: 'x'.repeat(100_000) }])[0]!;
    for (let i = 0; i < 200; i++) {
      file.write({ ...longRecord, seq: i + 1 });
      file.flush();
    }
    file.close();
  });

  test('does not block if it is a pipe without a reader, and a reader receives the available records', async () => {
    const path = temporaryFile();
    spawnSync('mkfifo', [path]);
    const file = traceFile(path);
    file.write(header);
    for (const record of [...spawns, ...all.slice(1, 50)]) file.write(record);
    file.flush();
    const reader = spawn('cat', [path], { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    reader.stdout.on('data', (chunk) => (text += chunk));
    await vi.waitFor(() => expect(text).toContain('"kind":"header"'), 30_000);
    file.write(all[50]!);
    file.close();
    await new Promise((resolve) => reader.once('close', resolve));
    const [first, ...records] = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as TraceRecord);
    expect(first).toMatchObject({ kind: 'header', actors: [{ actor: 'a' }] });
    expect(records.map(({ seq }) => seq)).toEqual([51]);
  });
});
