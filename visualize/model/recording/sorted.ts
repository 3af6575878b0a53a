import { firstIndex } from '../../../src/debugger/trace/record-list.ts';

/** `isBehind` must be true for all items after the first for which it is true. If it is false for all, the number of items is returned. */
export function firstAfter<Thing>(items: readonly Thing[], isBehind: (thing: Thing) => boolean): number {
  return firstIndex(items.length, (index) => isBehind(items[index]!));
}
