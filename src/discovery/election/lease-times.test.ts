import { describe, expect, it } from 'vitest';
import { defaultLeaseMs, leaseTimesOf, leaseTimesProblem, minLeaseMs, writeLimitMs } from './lease-times.ts';

it('Lease times default to those of client-go', () => {
  expect(leaseTimesOf(defaultLeaseMs)).toEqual({
    leaseMs: 15_000,
    termMs: 10_000,
    retryMs: 2_000,
    requestLimitMs: 3_333,
  });
});

describe.each([defaultLeaseMs, minLeaseMs, 4_000, 7_000, 61_000])(
  'Lease times for a Lease duration of %d ms',
  (leaseMs) => {
    const times = leaseTimesOf(leaseMs);

    it('are integer milliseconds, as timers require', () => {
      expect([...Object.values(times), writeLimitMs(times)].filter((ms) => !Number.isInteger(ms))).toEqual([]);
    });

    it('are valid and allow a second attempt', () => {
      expect(leaseTimesProblem(times)).toBeUndefined();
      expect(times.retryMs + times.requestLimitMs + times.retryMs / 4).toBeLessThan(times.termMs);
    });

    it('let a write that starts at the end of a term finish before another replica can lead', () => {
      expect(times.termMs + writeLimitMs(times)).toBeLessThan(leaseMs);
    });
  },
);

it.each([
  [
    { leaseMs: 10_000, termMs: 10_000, retryMs: 2_000, requestLimitMs: 1_000 },
    'the duration of a Lease must be longer',
  ],
  [
    { leaseMs: 15_000, termMs: 10_000, retryMs: 8_400, requestLimitMs: 1_000 },
    'the renew deadline of a Lease must be longer',
  ],
])('Lease times %j are rejected', (times, errorText) => {
  expect(leaseTimesProblem(times)).toContain(errorText);
});
