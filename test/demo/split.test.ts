import { expect, test } from 'vitest';
import type { LoadReport, TimelineSlice } from '../load/report.ts';
import { appliesAfterMs, shareBetween } from './split.ts';

const slice = (atMs: number, v1: number, v2: number): TimelineSlice => ({
  atMs,
  total: v1 + v2,
  failed: 0,
  versions: { v1, v2 },
});

const reportOf = (...timeline: TimelineSlice[]): LoadReport => ({
  startedAt: 0,
  durationMs: 1_000,
  total: 0,
  failed: 0,
  kinds: {},
  byName: {},
  versions: {},
  certificates: [],
  timeline,
});

const change = { version: 'v2', changedAtMs: 120, previousShare: 0.1, after: 0.8 };

test('a share is calculated from the responses between two times', () => {
  const report = reportOf(slice(0, 100, 0), slice(50, 30, 10), slice(100, 0, 100));
  expect(shareBetween(report, 'v2', 50, 100)).toEqual({ share: 0.25, responses: 40 });
});

test('a new split applies after the last slice that resembles the old one', () => {
  const report = reportOf(
    slice(100, 18, 2),
    slice(150, 17, 3),
    slice(200, 12, 8),
    slice(250, 5, 15),
    slice(300, 3, 17),
  );
  expect(appliesAfterMs(report, change)).toBe(130);
});

test('a slice with few responses is ignored', () => {
  const report = reportOf(slice(150, 18, 2), slice(200, 4, 16), slice(250, 3, 0), slice(300, 3, 17));
  expect(appliesAfterMs(report, change)).toBe(80);
});

test('the apply time of a traffic split that never takes effect is undefined', () => {
  expect(appliesAfterMs(reportOf(slice(150, 4, 16), slice(200, 18, 2)), change)).toBeUndefined();
});
