import { expect, test } from 'vitest';
import { setBounded } from './set-bounded.ts';

test('setBounded clears the map for a new entry above the limit, but not for a replaced entry', () => {
  const map = new Map<string, number>();
  for (const key of ['a', 'b', 'a']) setBounded(map, key, map.size, 2);
  expect([...map]).toEqual([
    ['a', 2],
    ['b', 1],
  ]);
  setBounded(map, 'c', 3, 2);
  expect([...map]).toEqual([['c', 3]]);
});
