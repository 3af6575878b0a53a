/** Index of the first of sorted things that is behind a border; their number when none is. `isBehind` is true from there on. */
export function firstAfter<Thing>(things: readonly Thing[], isBehind: (thing: Thing) => boolean): number {
  let low = 0;
  let high = things.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBehind(things[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}
