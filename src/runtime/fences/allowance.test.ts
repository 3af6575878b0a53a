import { expect, test } from 'vitest';
import { RateLimiter } from './allowance.ts';

test('an allowance permits a burst immediately, refills over time, and never exceeds the burst', () => {
  let now = 0;
  const allowance = new RateLimiter({ burst: 3, perSecond: 2 }, () => now);
  const takes = (count: number): number =>
    Array.from({ length: count }, () => allowance.tryTake()).filter(Boolean).length;
  expect(takes(5)).toBe(3);
  now = 400;
  expect(takes(1)).toBe(0);
  now = 1_000;
  expect(takes(5)).toBe(2);
  now = 3_600_000;
  expect(allowance.tryTake(4)).toBe(false);
  expect(takes(5)).toBe(3);
});
