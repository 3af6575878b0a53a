import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SortedList } from './sorted-list.ts';

const compareNumbers = (a: number, b: number): number => a - b;

it('SortedList equals a sorted array after the same edits, without modifying earlier versions', () => {
  const number = fc.integer({ min: 0, max: 3_000 });
  const edit = fc.record({ toggled: fc.uniqueArray(number, { maxLength: 90 }) });
  const start = fc.uniqueArray(number, { maxLength: 1_500, size: 'max' });
  fc.assert(
    fc.property(start, fc.array(edit, { maxLength: 12 }), (first, edits) => {
      let list = SortedList.of(first, compareNumbers);
      let model = new Set(first);
      const versions: [SortedList<number>, number[]][] = [];
      for (const { toggled } of edits) {
        versions.push([list, [...model].sort(compareNumbers)]);
        const toRemove = toggled.filter((one) => model.has(one));
        const addedItems = toggled.filter((one) => !model.has(one));
        list = list.withEdits(toRemove, addedItems);
        model = new Set([...[...model].filter((one) => !toRemove.includes(one)), ...addedItems]);
      }
      versions.push([list, [...model].sort(compareNumbers)]);
      for (const [version, expected] of versions) {
        expect(version.items).toEqual(expected);
        expect(version.length).toBe(expected.length);
      }
    }),
    { numRuns: 60 },
  );
});

it('SortedList accepts and removes thousands of items one by one', () => {
  let list = SortedList.of<number>([], compareNumbers);
  for (let number = 0; number < 2_000; number++) list = list.withEdits([], [number, -1 - number]);
  expect(list.items).toEqual(Array.from({ length: 4_000 }, (_, index) => index - 2_000));
  for (let number = -2_000; number < 2_000; number++) list = list.withEdits([number], []);
  expect([list.length, list.items]).toEqual([0, []]);
});

it('SortedList converts its items to an array only once', () => {
  const list = SortedList.of([2, 1], compareNumbers);
  expect(list.items).toBe(list.items);
});
