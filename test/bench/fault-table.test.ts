import { describe, expect, test } from 'vitest';
import type { LoadReport, TimelineSlice } from '../load/report.ts';
import { costOf, type FaultResult, formatFaultTable, maxSilenceMs, shortfalls } from './fault-table.ts';
import { subjectNames } from './subject.ts';

const slice = (atMs: number, total = 10, failed = 0): TimelineSlice => ({ atMs, total, failed, versions: {} });

describe('the longest silence of a run', () => {
  test('the longest silence is zero when requests succeed in every slice', () => {
    expect(maxSilenceMs([slice(0), slice(50), slice(100, 10, 9)])).toBe(0);
  });

  test('the longest silence spans slices with only failures and slices without requests', () => {
    expect(maxSilenceMs([slice(0), slice(50), slice(100, 4, 4), slice(250), slice(300)])).toBe(150);
  });

  test('the longest silence does not depend on the order of the slices', () => {
    expect(maxSilenceMs([slice(250), slice(50), slice(0), slice(300)])).toBe(150);
  });

  test('the longest silence is the whole run when no request succeeded', () => {
    expect(maxSilenceMs([slice(0, 3, 3), slice(400, 3, 3)])).toBe(400);
    expect(maxSilenceMs([])).toBe(0);
  });
});

test('the cost of a fault sums all load runs and lists failures by kind of client', () => {
  const kind = { failures: [], latencyMs: { p50: 1, p90: 1, p99: 1, max: 1 }, versions: {}, overtaken: 0 };
  const run = { startedAt: 0, durationMs: 1_000, versions: {}, certificates: [], timeline: [] };
  const keptReport: LoadReport = {
    ...run,
    total: 100,
    failed: 5,
    byName: {},
    kinds: {
      ka: { ...kind, total: 90, failed: 5, connections: 2 },
      slow: { ...kind, total: 10, failed: 0, connections: 1 },
    },
  };
  const newConnections: LoadReport = {
    ...run,
    total: 50,
    failed: 2,
    byName: {},
    kinds: { new: { ...kind, total: 50, failed: 2, connections: 50 } },
  };
  expect(costOf([keptReport, newConnections], [slice(0), slice(50), slice(200), slice(1_150, 20, 2)])).toEqual({
    total: 150,
    failed: 7,
    refusedMs: 900,
    failedByKind: 'ka 5/90, new 2/50',
    worstSecond: { total: 30, failed: 2 },
  });
});

const result: FaultResult = {
  fault: 'kill',
  subject: 'pilot-agent',
  total: 900,
  failed: 3,
  refusedMs: 250,
  servedAfterMs: 1_234.5,
  failedByKind: 'ka 3/400',
  worstSecond: { total: 90, failed: 2 },
};

test('the table has a row for each fault, a column for each subject, and notes below', () => {
  const table = formatFaultTable(
    [
      result,
      { ...result, subject: 'plain supervisor', failed: 40, servedAfterMs: undefined, note: 'never came back' },
      { ...result, fault: 'none', failed: 0, failedByKind: '' },
    ],
    subjectNames,
  );
  expect(table.split('\n')).toEqual([
    'fault  pilot-agent: failed  refused for  served after  plain supervisor: failed  refused for  served after',
    'kill                 3/900       250 ms       1235 ms                    40/900       250 ms         never',
    'none                 0/900       250 ms       1235 ms                         -            -             -',
    '',
    'kill, pilot-agent: failed: ka 3/400; worst second of new connections: 2 of 90',
    'kill, plain supervisor: failed: ka 3/400; worst second of new connections: 2 of 90; never came back',
  ]);
});

test('a missed goal is reported with the amount by which the figure exceeds it', () => {
  expect(shortfalls(result, {})).toEqual([]);
  expect(shortfalls(result, { failed: 3, refusedMs: 250, failedShareOfNew: 0.03 })).toEqual([]);
  expect(shortfalls(result, { failed: 2, refusedMs: 200, failedShareOfNew: 0.02 })).toEqual([
    'kill: 3 failed, the goal is 2',
    'kill: refused for 250 ms, the goal is 200 ms',
    'kill: 2 of 90 new connections of one second failed, the goal is 2 %',
  ]);
});
