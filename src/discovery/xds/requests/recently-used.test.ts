import { expect, test } from 'vitest';
import { cpuMs } from '../../../../test/harness/cpu-time.ts';
import { growthOf } from '../../../../test/harness/growth.ts';
import { keepRecentlyUsed } from './recently-used.ts';

const lengths = (maxBytes: number) => keepRecentlyUsed<string, string>(maxBytes, ({ length }) => length);

test('keepRecentlyUsed evicts the least recently used entry', () => {
  const recentEntries = lengths(6);
  recentEntries.set('a', 'aa');
  recentEntries.set('b', 'bb');
  recentEntries.set('c', 'cc');
  expect(recentEntries.get('a')).toBe('aa');
  recentEntries.set('d', 'd');
  expect([recentEntries.get('a'), recentEntries.get('b'), recentEntries.get('c'), recentEntries.get('d')]).toEqual([
    'aa',
    undefined,
    'cc',
    'd',
  ]);
});

test('keepRecentlyUsed keeps the newest entry, whatever its size', () => {
  const recentEntries = lengths(3);
  recentEntries.set('a', 'aa');
  recentEntries.set('b', 'bbbbbbbb');
  expect([recentEntries.size, recentEntries.get('b')]).toEqual([1, 'bbbbbbbb']);
});

test('keepRecentlyUsed evicts an entry in constant time, regardless of the number of entries', () => {
  const costOf = (count: number): number => {
    const recentEntries = keepRecentlyUsed<number, string>(count, () => 1);
    let next = 0;
    for (; next < count; next++) recentEntries.set(next, '');
    return cpuMs(() => {
      for (const end = next + 100_000; next < end; next++) recentEntries.set(next, '');
    });
  };
  const growth = growthOf(costOf, 1_000, 100_000);
  expect(growth).toBeLessThan(15);
});
