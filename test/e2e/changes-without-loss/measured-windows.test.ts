import { expect, test } from 'vitest';
import type { NameReport } from '../../load/report.ts';
import { MeasuredWindows, makeBeforeBreakLimitMs } from './measured-windows.ts';

/** A run with the given failed requests and processor waits per window. */
function run(windows: readonly { failed: number; waitedMs: number }[]) {
  const remainingWindows = [...windows];
  let waited = 0;
  const observedCounts = { total: 0, failed: 0, reasons: {} as Record<string, number> };
  const loggedLines: string[] = [];
  const measuredWindows = new MeasuredWindows({
    report: async () => ({ byName: { http: structuredClone<NameReport>(observedCounts) } }),
    waitedMs: () => waited,
    settle: async () => {},
    log: (line) => void loggedLines.push(line),
  });
  const applyChanges = async (): Promise<void> => {
    const { failed, waitedMs } = remainingWindows.shift()!;
    waited += waitedMs;
    observedCounts.total += 10;
    observedCounts.failed += failed;
    if (failed > 0) observedCounts.reasons['HTTP_503 NC'] = (observedCounts.reasons['HTTP_503 NC'] ?? 0) + failed;
  };
  return { measured: measuredWindows, make: applyChanges, logged: loggedLines };
}

test('a window is repeated if requests fail while the control plane waits for a processor longer than the limit', async () => {
  const { measured, make, logged } = run([
    { failed: 3, waitedMs: makeBeforeBreakLimitMs + 1 },
    { failed: 0, waitedMs: 0 },
  ]);
  await measured.measure(2, make);
  expect(measured.changes).toBe(2);
  expect(measured.repeated).toBe(1);
  expect(measured.byName).toEqual({ http: { total: 10, failed: 0, reasons: {} } });
  expect(logged).toEqual([
    'not measured: 2 changes, 3 requests failed, the control plane waited 5.0 s for a processor',
  ]);
});

test('failures count if the control plane does not wait for a processor longer than the limit', async () => {
  const { measured, make } = run([{ failed: 1, waitedMs: makeBeforeBreakLimitMs }]);
  await measured.measure(1, make);
  expect(measured.byName).toEqual({ http: { total: 10, failed: 1, reasons: { 'HTTP_503 NC': 1 } } });
  expect(measured.repeated).toBe(0);
});

test('a window without failures counts regardless of how long the control plane waited for a processor', async () => {
  const { measured, make } = run([{ failed: 0, waitedMs: 60_000 }]);
  await measured.measure(1, make);
  expect([measured.changes, measured.repeated]).toEqual([1, 0]);
});

test('a run fails if the control plane waits too long for a processor in every window', async () => {
  const { measured, make } = run(Array.from({ length: 30 }, () => ({ failed: 1, waitedMs: 6_000 })));
  await expect(measured.measure(1, make)).rejects.toThrow('windows were not measured');
});
