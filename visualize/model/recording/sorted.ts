import { firstIndex } from '../../../src/debugger/trace/record-list.ts';

/** Index of the first of sorted things that is behind a border; their number when none is. `isBehind` is true from there on. */
export function firstAfter<Thing>(things: readonly Thing[], isBehind: (thing: Thing) => boolean): number {
  return firstIndex(things.length, (index) => isBehind(things[index]!));
}
