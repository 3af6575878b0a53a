export interface ListDiff<T> {
  readonly removed: readonly T[];
  readonly added: readonly T[];
}

/** Needs one comparison per item if the lists differ in one place. */
export function listDiff<T extends object>(previous: readonly T[], after: readonly T[]): ListDiff<T> {
  if (previous === after) return { removed: [], added: [] };
  let start = 0;
  while (start < previous.length && start < after.length && previous[start] === after[start]) start++;
  let end = 0;
  const maxEnd = Math.min(previous.length, after.length) - start;
  while (end < maxEnd && previous[previous.length - 1 - end] === after[after.length - 1 - end]) end++;
  const previousItems = previous.slice(start, previous.length - end);
  const now = after.slice(start, after.length - end);
  const [oldSet, nowSet] = [new Set(previousItems), new Set(now)];
  return { removed: previousItems.filter((item) => !nowSet.has(item)), added: now.filter((item) => !oldSet.has(item)) };
}

/** Removes and adds items in a sorted list; returns the list itself if nothing changes. */
export function changedList<T extends object>(
  list: readonly T[],
  removed: ReadonlySet<T>,
  added: readonly T[],
  compare: (a: T, b: T) => number,
): readonly T[] {
  const keptItems = removed.size === 0 ? [...list] : list.filter((item) => !removed.has(item));
  if (keptItems.length === list.length && added.length === 0) return list;
  // Binary insertion is faster only for a few items.
  if (added.length > 32) return [...keptItems, ...added].sort(compare);
  for (const item of added) keptItems.splice(placeOf(keptItems, item, compare), 0, item);
  return keptItems;
}

function placeOf<T>(list: readonly T[], item: T, compare: (a: T, b: T) => number): number {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(list[middle]!, item) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
