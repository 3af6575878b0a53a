import { firstIndex } from '../../../src/debugger/trace/record-list.ts';

/** Index of the first item for which `isBehind` is true, else the number of items. `isBehind` must be true for all later items. */
export function firstAfter<Thing>(items: readonly Thing[], isBehind: (thing: Thing) => boolean): number {
  return firstIndex(items.length, (index) => isBehind(items[index]!));
}
