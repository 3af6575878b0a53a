import fc from 'fast-check';
import { expect, it } from 'vitest';
import { changedList, listDiff } from './list-diff.ts';

interface Item {
  readonly age: number;
}

const items: readonly Item[] = Array.from({ length: 12 }, (_, age) => ({ age }));
const byAge = (a: Item, b: Item): number => a.age - b.age;

it('a list difference yields the second list when applied to the first', () => {
  fc.assert(
    fc.property(fc.subarray([...items]), fc.subarray([...items]), (previous, after) => {
      const { removed, added } = listDiff(previous, after);
      expect(changedList(previous, new Set(removed), added, byAge)).toEqual(after);
      expect(removed.every((item) => previous.includes(item) && !after.includes(item))).toBe(true);
      expect(added.every((item) => after.includes(item) && !previous.includes(item))).toBe(true);
    }),
  );
});

it('changedList returns the same list if nothing changes', () => {
  expect(changedList(items, new Set([{ age: 3 }]), [], byAge)).toBe(items);
});

it('changedList inserts many items in the same order as few items', () => {
  const odd = Array.from({ length: 50 }, (_, index) => ({ age: index * 2 + 1 }));
  const even = Array.from({ length: 50 }, (_, index) => ({ age: index * 2 }));
  expect(changedList(even, new Set(), odd, byAge).map(({ age }) => age)).toEqual(
    Array.from({ length: 100 }, (_, age) => age),
  );
});
