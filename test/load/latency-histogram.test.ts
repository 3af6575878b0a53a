import { expect, test } from 'vitest';
import { LatencyHistogram } from './latency-histogram.ts';

test('percentiles are at most 2 % above the values at their ranks', () => {
  const histogram = new LatencyHistogram();
  for (let latency = 1; latency <= 1_000; latency++) histogram.add(latency);
  const { p50, p90, p99, max } = histogram.percentiles();
  expect(p50 / 500).toBeGreaterThanOrEqual(1);
  expect(p50 / 500).toBeLessThanOrEqual(1.02);
  expect(p90 / 900).toBeCloseTo(1.01, 1);
  expect(p99 / 990).toBeCloseTo(1, 1);
  expect(max).toBe(1_000);
});

test('the percentiles of an empty histogram are zero', () => {
  expect(new LatencyHistogram().percentiles()).toEqual({ p50: 0, p90: 0, p99: 0, max: 0 });
});
