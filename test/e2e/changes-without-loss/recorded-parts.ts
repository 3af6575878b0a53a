/**
 * Parts of the long form, which may run one after the other or in parallel: `CHARTPILOT_TEST_PART=i/n` runs the i-th of n shares. The results of each
 * part are recorded, and printed with the sum over all recorded parts.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { packageRoot } from '../../../src/runtime/package-root.ts';
import { sized } from '../../harness/size-of-run.ts';

export interface RecordedPart {
  readonly part: string;
  readonly changes: number;
  readonly requests: number;
  readonly connections: number;
  readonly failed: number;
  /** Number of discarded windows. */
  readonly notMeasured: number;
  readonly seconds: number;
}

/** One line for each part of the long form; delete the file to start again. */
const recordFile = join(packageRoot(), 'coverage/changes-without-loss.ndjson');

const [share, shares] = shareOf(process.env.CHARTPILOT_TEST_PART ?? '1/1');

/** @throws Error if the text is not `i/n` with 1 <= i <= n */
export function shareOf(text: string): readonly [share: number, shares: number] {
  const [, share = 0, shares = 0] = (/^(\d+)\/(\d+)$/.exec(text) ?? []).map(Number);
  if (share < 1 || share > shares) throw new Error(`CHARTPILOT_TEST_PART: must be i/n with 1 <= i <= n, got "${text}"`);
  return [share, shares];
}

/** Whether this run includes the part with this zero-based index. */
export function isOfThisRun(index: number): boolean {
  return index % shares === share - 1;
}

const partsOfThisRun: RecordedPart[] = [];

export function recordPart(part: RecordedPart): void {
  partsOfThisRun.push(part);
  if (sized({ short: true, full: false })) return;
  mkdirSync(dirname(recordFile), { recursive: true });
  appendFileSync(recordFile, `${JSON.stringify(part)}\n`);
}

function readRecordedParts(): readonly RecordedPart[] {
  if (sized({ short: true, full: false }) || !existsSync(recordFile)) return partsOfThisRun;
  const lines = readFileSync(recordFile, 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line) as RecordedPart);
}

/** A row for each recorded part, and their sum. */
export function recordedTable(parts: readonly RecordedPart[] = readRecordedParts()): string {
  const sumOf = (name: Exclude<keyof RecordedPart, 'part'>): number => parts.reduce((sum, one) => sum + one[name], 0);
  const sum: RecordedPart = {
    part: 'all',
    changes: sumOf('changes'),
    requests: sumOf('requests'),
    connections: sumOf('connections'),
    failed: sumOf('failed'),
    notMeasured: sumOf('notMeasured'),
    seconds: sumOf('seconds'),
  };
  const rows = [...parts, sum].map(
    ({ part, changes, requests, connections, failed, notMeasured, seconds }) =>
      `| ${part} | ${changes} | ${requests} | ${connections} | ${failed} | ${notMeasured} | ${seconds} |`,
  );
  return [
    '| part | changes | requests | connections | failed | windows not measured | seconds |',
    '|---|---|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}
