import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { checkTraces } from '../check/check-command.ts';
import { exportOtlp } from '../otlp/otlp-command.ts';
import { openTrace, readRecords } from '../trace/read-trace.ts';
import { mergeInto } from './merge-command.ts';

const stored = join(import.meta.dirname, '../../../test/fixtures/traces-of-versions');

test('chartpilot trace --merge combines traces of all versions into one readable trace and reports the placement of each', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-merge-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'all.trace');
  const texts: string[] = [];
  const traces = ['version-1.trace', 'version-2.trace', 'version-3.trace'].map((name) => join(stored, name));
  const print = (text: string): void => void texts.push(text);
  await mergeInto(path, traces, { out: print, error: print });
  expect(texts.join('')).toMatch(/^version-1: reference clock\nversion-2: placed by its wall clock/);
  const { records } = await readRecords((await openTrace(path)).records);
  const lines = traces.map((trace) => readFileSync(trace, 'utf8').trimEnd().split('\n').length - 1);
  // The merged trace has one more record per program with its placement.
  expect(records).toHaveLength(lines.reduce((sum, count) => sum + count, 0) + 3);
  for (const [i, { t }] of records.entries()) if (i > 0) expect(t).toBeGreaterThanOrEqual(records[i - 1]!.t);
  expect(records.flatMap((record) => (record.kind === 'spawn' ? record.actor : []))).toContain('version-2:epoch-1');
});

test('chartpilot trace --merge rejects invalid arguments and does not overwrite its inputs', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-merge-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [one, two, link] = ['one.trace', 'two.trace', 'link.trace'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  copyFileSync(join(stored, 'version-3.trace'), one);
  copyFileSync(join(stored, 'version-2.trace'), two);
  symlinkSync(one, link);
  const output = { out: () => {}, error: () => {} };
  const originalText = readFileSync(one, 'utf8');
  for (const to of [one, link]) {
    await expect(mergeInto(to, [one, two], output)).rejects.toMatchObject({ code: 'FLAG_INVALID' });
  }
  expect(readFileSync(one, 'utf8')).toBe(originalText);
  const all = join(folder, 'all.trace');
  await expect(mergeInto(all, [one], output)).rejects.toMatchObject({ code: 'FLAG_INVALID', fields: { got: '1' } });
  await expect(mergeInto(all, [one, two, link], output)).rejects.toMatchObject({
    code: 'FLAG_INVALID',
    fields: { path: link, got: 'the run of one' },
  });
  await mergeInto(all, [one, two], output);
  // The merged trace has the mode of the input traces.
  expect(statSync(all).mode & 0o777).toBe(0o600);
  await expect(mergeInto(join(folder, 'more.trace'), [all, one], output)).rejects.toMatchObject({
    code: 'FLAG_INVALID',
    fields: { path: all },
  });
  const warnings: string[] = [];
  expect(
    await checkTraces([all], { format: 'text' }, { out: () => {}, error: (text) => void warnings.push(text) }),
  ).toBe(2);
  expect(warnings.join('')).toContain('a merged trace (one, two)');
});

test('a merged trace exports the same spans as the traces that it combines', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-merge-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const all = join(folder, 'all.trace');
  const traces = ['version-1.trace', 'version-2.trace'].map((name) => join(stored, name));
  await mergeInto(all, traces, { out: () => {}, error: () => {} });
  const spansOf = async (path: string): Promise<[string, number][]> => {
    const to = join(folder, 'spans');
    await exportOtlp(path, to, { out: () => {}, error: () => {} });
    const requests = readFileSync(to, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    return requests
      .flatMap(({ resourceSpans }) => resourceSpans)
      .flatMap(({ scopeSpans }) => scopeSpans)
      .flatMap(({ spans }) => spans)
      .map((span) => [span.name, Math.round((span.endTimeUnixNano - span.startTimeUnixNano) / 1e6)]);
  };
  const separateSpans = [...(await spansOf(traces[0]!)), ...(await spansOf(traces[1]!))];
  expect(separateSpans).toHaveLength(19);
  expect(await spansOf(all)).toEqual(separateSpans);
});
