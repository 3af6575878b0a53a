import { expect, test } from 'vitest';
import { cpuMs } from '../../../../test/harness/cpu-time.ts';
import { growthOf } from '../../../../test/harness/growth.ts';
import { keepRecentlyUsed } from './recently-used.ts';

const lengths = (maxBytes: number) => keepRecentlyUsed<string, string>(maxBytes, ({ length }) => length);

test('keepRecentlyUsed evicts the least recently used entry', () => {
  const kept = lengths(6);
  kept.set('a', 'aa');
  kept.set('b', 'bb');
  kept.set('c', 'cc');
  expect(kept.get('a')).toBe('aa');
  kept.set('d', 'd');
  expect([kept.get('a'), kept.get('b'), kept.get('c'), kept.get('d')]).toEqual(['aa', undefined, 'cc', 'd']);
});

test('keepRecentlyUsed keeps the newest entry, whatever its size', () => {
  const kept = lengths(3);
  kept.set('a', 'aa');
  kept.set('b', 'bbbbbbbb');
  expect([kept.size, kept.get('b')]).toEqual([1, 'bbbbbbbb']);
});

test('keepRecentlyUsed evicts an entry in constant time, regardless of the number of entries', () => {
  const costOf = (count: number): number => {
    const kept = keepRecentlyUsed<number, string>(count, () => 1);
    let next = 0;
    for (; next < count; next++) kept.set(next, '');
    return cpuMs(() => {
      for (const end = next + 100_000; next < end; next++) kept.set(next, '');
    });
  };
  const growth = growthOf(costOf, 1_000, 100_000);
  expect(growth).toBeLessThan(15);
});
