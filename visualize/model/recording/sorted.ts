import { firstIndex } from '../../../src/debugger/trace/record-list.ts';

/** `isBehind` must be true for all items after the first for which it is true. If it is false for all, the number of items is returned. */
export function firstIndexAfter<Thing>(items: readonly Thing[], isAfter: (thing: Thing) => boolean): number {
  return firstIndex(items.length, (index) => isAfter(items[index]!));
}
