import fc from 'fast-check';
import { expect, it } from 'vitest';
import { runToEnd } from '../../runtime/turns.ts';
import { sortInSteps } from './sorting.ts';

const items = fc.array(fc.integer({ min: 0, max: 99 }), { maxLength: 3_000, size: 'max' }).map((keys) =>
  // The index distinguishes items that compare as equal.
  keys.map((key, index) => ({ key, place: index })),
);
const compareKey = (a: { key: number }, b: { key: number }): number => a.key - b.key;

it('sorting is stable like that of an array, and does not modify the array', () => {
  fc.assert(
    fc.property(items, (drawnItems) => {
      const copy = [...drawnItems];
      expect(runToEnd(sortInSteps(drawnItems, compareKey))).toEqual(copy.toSorted(compareKey));
      expect(drawnItems).toEqual(copy);
    }),
    { numRuns: 50 },
  );
});

it('sorting yields after every few hundred items during sort and merge', () => {
  const keyedItems = Array.from({ length: 10_000 }, (_, index) => ({ key: (index * 7_919) % 10_000, place: index }));
  let comparisons = 0;
  const countingCompare = (a: { key: number }, b: { key: number }): number => {
    comparisons++;
    return compareKey(a, b);
  };
  const steps = sortInSteps(keyedItems, countingCompare);
  let maxItems = 0;
  for (let last = 0; !steps.next().done; last = comparisons) maxItems = Math.max(maxItems, comparisons - last);
  expect(maxItems).toBeGreaterThan(100);
  expect(maxItems).toBeLessThan(6_000);
});
