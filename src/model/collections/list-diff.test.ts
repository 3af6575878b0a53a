import fc from 'fast-check';
import { expect, it } from 'vitest';
import { changedList, listDiff } from './list-diff.ts';

interface Item {
  readonly age: number;
}

const items: readonly Item[] = Array.from({ length: 12 }, (_, age) => ({ age }));
const compareAge = (a: Item, b: Item): number => a.age - b.age;

it('a list difference yields the second list when applied to the first', () => {
  fc.assert(
    fc.property(fc.subarray([...items]), fc.subarray([...items]), (previous, next) => {
      const { removed, added } = listDiff(previous, next);
      expect(changedList(previous, new Set(removed), added, compareAge)).toEqual(next);
      expect(removed.every((item) => previous.includes(item) && !next.includes(item))).toBe(true);
      expect(added.every((item) => next.includes(item) && !previous.includes(item))).toBe(true);
    }),
  );
});

it('changedList returns the same list if nothing changes', () => {
  expect(changedList(items, new Set([{ age: 3 }]), [], compareAge)).toBe(items);
});

it('changedList inserts many items in the same order as few items', () => {
  const oddItems = Array.from({ length: 50 }, (_, index) => ({ age: index * 2 + 1 }));
  const even = Array.from({ length: 50 }, (_, index) => ({ age: index * 2 }));
  expect(changedList(even, new Set(), oddItems, compareAge).map(({ age }) => age)).toEqual(
    Array.from({ length: 100 }, (_, age) => age),
  );
});
