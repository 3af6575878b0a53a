import { expect, test, vi } from 'vitest';
import { memoizeByObject, memoizeByPair } from './memoize-by-object.ts';

test('memoizeByObject computes a value once per object', () => {
  const compute = vi.fn((list: readonly number[]) => list.length > 1);
  const isLong = memoizeByObject(compute);
  const [one, two] = [[1], [1]];
  // Falsy values are cached, too.
  expect([isLong(one), isLong(one), isLong(two)]).toEqual([false, false, false]);
  expect(compute.mock.calls).toEqual([[one], [two]]);
});

test('memoizeByPair computes a value once per pair of objects', () => {
  const compute = vi.fn((a: object, b: object) => ({ a, b }));
  const memoizedPair = memoizeByPair(compute);
  const [a, b] = [{}, {}];
  expect(memoizedPair(a, b)).toBe(memoizedPair(a, b));
  expect(memoizedPair(b, a)).toEqual({ a: b, b: a });
  expect(compute).toHaveBeenCalledTimes(2);
});

test('memoizeByObject computes a value again after an error', () => {
  let fails = true;
  const memoized = memoizeByObject(() => {
    if (fails) throw new Error('not yet');
    return 1;
  });
  const key = {};
  expect(() => memoized(key)).toThrow('not yet');
  fails = false;
  expect(memoized(key)).toBe(1);
});
