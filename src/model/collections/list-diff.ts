export interface ListDiff<T> {
  readonly removed: readonly T[];
  readonly added: readonly T[];
}

/** Needs one comparison per item if the lists differ in one place. */
export function listDiff<T extends object>(previous: readonly T[], next: readonly T[]): ListDiff<T> {
  if (previous === next) return { removed: [], added: [] };
  let start = 0;
  while (start < previous.length && start < next.length && previous[start] === next[start]) start++;
  let end = 0;
  const maxEnd = Math.min(previous.length, next.length) - start;
  while (end < maxEnd && previous[previous.length - 1 - end] === next[next.length - 1 - end]) end++;
  const previousItems = previous.slice(start, previous.length - end);
  const current = next.slice(start, next.length - end);
  const [oldSet, nowSet] = [new Set(previousItems), new Set(current)];
  return {
    removed: previousItems.filter((item) => !nowSet.has(item)),
    added: current.filter((item) => !oldSet.has(item)),
  };
}

/** Returns the list itself if nothing changes. */
export function changedList<T extends object>(
  list: readonly T[],
  removedItems: ReadonlySet<T>,
  addedItems: readonly T[],
  compare: (a: T, b: T) => number,
): readonly T[] {
  const remainingItems = removedItems.size === 0 ? [...list] : list.filter((item) => !removedItems.has(item));
  if (remainingItems.length === list.length && addedItems.length === 0) return list;
  // Binary insertion is faster only for a few items.
  if (addedItems.length > 32) return [...remainingItems, ...addedItems].sort(compare);
  for (const item of addedItems) remainingItems.splice(placeOf(remainingItems, item, compare), 0, item);
  return remainingItems;
}

function placeOf<T>(list: readonly T[], item: T, compare: (a: T, b: T) => number): number {
  let [lowIndex, highIndex] = [0, list.length];
  while (lowIndex < highIndex) {
    const middle = (lowIndex + highIndex) >>> 1;
    if (compare(list[middle]!, item) <= 0) lowIndex = middle + 1;
    else highIndex = middle;
  }
  return lowIndex;
}
