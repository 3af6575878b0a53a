import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { headerWith } from '../../../test/fixtures/trace-header.ts';
import { formatTraceLine, type TraceBody } from '../../runtime/trace/trace.ts';
import { mergeInto } from '../merge/merge-command.ts';
import { openTrace, readRecords } from '../trace/read-trace.ts';
import { printSummary } from './summary-command.ts';

let path: string;
beforeEach(() => {
  path = join(mkdtempSync(join(tmpdir(), 'chartpilot-summary-')), 'a.trace');
});
afterEach(() => rmSync(join(path, '..'), { recursive: true }));

function write(bodies: readonly TraceBody[], trailingText = ''): void {
  const lines = bodies.map((body, i) => ({ seq: 100 + i, t: i * 250, ...body }));
  const header = headerWith({ startedAt: '2026-03-01T03:12:00.000Z' });
  writeFileSync(path, [header, ...lines].map(formatTraceLine).join('') + trailingText);
}

async function summaryOf(format: 'text' | 'json', clock = false): Promise<{ out: string; error: string }> {
  const run = { out: '', error: '' };
  await printSummary(
    path,
    { format, clock },
    {
      out: (text) => {
        run.out += text;
      },
      error: (text) => {
        run.error += text;
      },
    },
  );
  return run;
}

const servedBodies: TraceBody[] = [
  { kind: 'spawn', actor: 'agent' },
  { kind: 'event', from: 'supervisor', to: 'status', event: { type: 'serving.began', name: 'epoch-0' }, cause: 100 },
];

test('chartpilot trace --summary prints one line per finding with record number, time, and time spent', async () => {
  write(servedBodies);
  expect((await summaryOf('text')).out).toMatch(
    /^ +101 +250\.000 {2}✓ epoch 0 is live 250 ms after the start\n +250 ms: 250 ms supervisor\n +101 .*• the trace ends while/,
  );
  expect((await summaryOf('text', true)).out).toContain('101 2026-03-01T03:12:00.250Z  ✓');
});

test('chartpilot trace --summary reports missing records, because they can cause wrong findings', async () => {
  write(servedBodies);
  const [header, first, secondLine] = readFileSync(path, 'utf8').trimEnd().split('\n');
  writeFileSync(path, [header, first, secondLine!.replace('"seq":101', '"seq":110'), ''].join('\n'));
  expect((await summaryOf('text')).error).toBe(`${path}: records 101 to 109 are missing: findings may be wrong\n`);
});

test('chartpilot trace --summary applies the rules to each program of a merged trace separately and names it', async () => {
  write(servedBodies);
  const other = join(path, '../b.trace');
  const all = join(path, '../all.trace');
  writeFileSync(other, readFileSync(path, 'utf8').replace('"pid":1', '"pid":2'));
  await mergeInto(all, [path, other], { out: () => {}, error: () => {} });
  path = all;
  const { out, error } = await summaryOf('text');
  expect(error).toBe('');
  expect(out).toContain('✓ a: epoch 0 is live 250 ms after the start\n');
  expect(out).toContain('✓ b: epoch 0 is live 250 ms after the start\n');
  expect(out).not.toContain('replaced');
  const { verdicts } = JSON.parse((await summaryOf('json')).out);
  const { records } = await readRecords((await openTrace(path)).records);
  for (const { rule, record } of verdicts as { rule: string; record: number }[]) {
    if (rule !== 'restart') continue;
    expect(records.find(({ seq }) => seq === record)).toMatchObject({ event: { type: 'serving.began' } });
  }
});

test('chartpilot trace --summary --format json refers to records by their numbers', async () => {
  write(servedBodies);
  const { verdicts } = JSON.parse((await summaryOf('json')).out);
  expect(verdicts[0]).toMatchObject({ rule: 'restart', weight: 'fine', record: 101, range: [100, 101], root: 100 });
});

test('chartpilot trace --summary prints no findings for an empty trace and reports an incomplete line', async () => {
  write([], '{"seq":1,"t":0,"ki');
  expect(await summaryOf('text')).toEqual({
    out: 'no findings\n',
    error: expect.stringMatching(/a\.trace:2: truncated line/),
  });
});
