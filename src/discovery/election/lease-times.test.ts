import { describe, expect, it } from 'vitest';
import { leaseTimesOf, mistakeIn, shortestLeaseMs, usualLeaseMs, writeLimitMs } from './lease-times.ts';

it('usual times are those of client-go', () => {
  expect(leaseTimesOf(usualLeaseMs)).toEqual({ leaseMs: 15_000, termMs: 10_000, retryMs: 2_000, answerMs: 3_333 });
});

describe.each([usualLeaseMs, shortestLeaseMs, 4_000, 7_000, 61_000])('of a Lease of %d ms', (leaseMs) => {
  const times = leaseTimesOf(leaseMs);

  it('all are whole milliseconds, as timers want them', () => {
    expect([...Object.values(times), writeLimitMs(times)].filter((ms) => !Number.isInteger(ms))).toEqual([]);
  });

  it('none is a mistake, and there is time for a second try', () => {
    expect(mistakeIn(times)).toBeUndefined();
    expect(times.retryMs + times.answerMs + times.retryMs / 4).toBeLessThan(times.termMs);
  });

  it('a write that begins in the last moment of a term is over before anybody else may lead', () => {
    expect(times.termMs + writeLimitMs(times)).toBeLessThan(leaseMs);
  });
});

it.each([
  [{ leaseMs: 10_000, termMs: 10_000, retryMs: 2_000, answerMs: 1_000 }, 'the duration of a Lease must be longer'],
  [
    { leaseMs: 15_000, termMs: 10_000, retryMs: 8_400, answerMs: 1_000 },
    'the renew deadline of a Lease must be longer',
  ],
])('%j is a mistake', (times, word) => {
  expect(mistakeIn(times)).toContain(word);
});
