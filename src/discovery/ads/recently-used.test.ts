import { expect, test } from 'vitest';
import { cpuMs } from '../../../test/harness/cpu-time.ts';
import { growthOf } from '../../../test/harness/growth.ts';
import { RecentlyUsed } from './recently-used.ts';

const lengths = (maxBytes: number) => new RecentlyUsed<string, string>(maxBytes, ({ length }) => length);

test('what was not used for longest goes first', () => {
  const kept = lengths(6);
  kept.add('a', 'aa');
  kept.add('b', 'bb');
  kept.add('c', 'cc');
  expect(kept.get('a')).toBe('aa');
  kept.add('d', 'd');
  expect([kept.get('a'), kept.get('b'), kept.get('c'), kept.get('d')]).toEqual(['aa', undefined, 'cc', 'd']);
});

test('the last one stays, however large', () => {
  const kept = lengths(3);
  kept.add('a', 'aa');
  kept.add('b', 'bbbbbbbb');
  expect([kept.size, kept.get('b')]).toEqual([1, 'bbbbbbbb']);
});

test('one drop costs the same, however much is kept', () => {
  const costOf = (count: number): number => {
    const kept = new RecentlyUsed<number, string>(count, () => 1);
    let next = 0;
    for (; next < count; next++) kept.add(next, '');
    return cpuMs(() => {
      for (const end = next + 100_000; next < end; next++) kept.add(next, '');
    });
  };
  const growth = growthOf(costOf, 1_000, 100_000);
  expect(growth).toBeLessThan(15);
});
