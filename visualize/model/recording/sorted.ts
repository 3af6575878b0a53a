import { firstIndex } from '../../../src/debugger/trace/record-list.ts';

/**
 * @returns the number of items if `isAfter` is false for all
 * @param isAfter must be true for all items after the first for which it is true
 */
export function firstIndexAfter<Thing>(items: readonly Thing[], isAfter: (thing: Thing) => boolean): number {
  return firstIndex(items.length, (index) => isAfter(items[index]!));
}
