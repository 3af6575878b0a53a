import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openTrace, readRecords } from '../trace/read-trace.ts';
import { mergeInto } from './merge-command.ts';

const stored = join(import.meta.dirname, '../../../test/fixtures/traces-of-versions');

test('traces of all versions become one that is read like any other, and where each was put is told', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-merge-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'all.trace');
  const texts: string[] = [];
  const traces = ['version-1.trace', 'version-2.trace', 'version-3.trace'].map((name) => join(stored, name));
  const say = (text: string): void => void texts.push(text);
  await mergeInto(path, traces, { out: say, error: say });
  expect(texts.join('')).toMatch(/^version-1: its clock is the measure\nversion-2: placed by its wall clock/);
  const { records } = await readRecords((await openTrace(path)).records);
  const lines = traces.map((trace) => readFileSync(trace, 'utf8').trimEnd().split('\n').length - 1);
  // And one of each that says where it was put.
  expect(records).toHaveLength(lines.reduce((sum, count) => sum + count, 0) + 3);
  for (const [i, { t }] of records.entries()) if (i > 0) expect(t).toBeGreaterThanOrEqual(records[i - 1]!.t);
  expect(records.flatMap((record) => (record.kind === 'spawn' ? record.actor : []))).toContain('version-2:epoch-1');
});
