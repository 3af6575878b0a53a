import { expect, test, vi } from 'vitest';
import { memoizeByObject, memoizeByPair } from './memoize-by-object.ts';

test('memoizeByObject computes a value once per object', () => {
  const make = vi.fn((list: readonly number[]) => list.length > 1);
  const isLong = memoizeByObject(make);
  const [one, two] = [[1], [1]];
  // Falsy values are cached, too.
  expect([isLong(one), isLong(one), isLong(two)]).toEqual([false, false, false]);
  expect(make.mock.calls).toEqual([[one], [two]]);
});

test('memoizeByPair computes a value once per pair of objects', () => {
  const make = vi.fn((a: object, b: object) => ({ a, b }));
  const both = memoizeByPair(make);
  const [a, b] = [{}, {}];
  expect(both(a, b)).toBe(both(a, b));
  expect(both(b, a)).toEqual({ a: b, b: a });
  expect(make).toHaveBeenCalledTimes(2);
});

test('memoizeByObject computes a value again after an error', () => {
  let fails = true;
  const cached = memoizeByObject(() => {
    if (fails) throw new Error('not yet');
    return 1;
  });
  const key = {};
  expect(() => cached(key)).toThrow('not yet');
  fails = false;
  expect(cached(key)).toBe(1);
});
