export interface ListDiff<T> {
  readonly removed: readonly T[];
  readonly added: readonly T[];
}

/** Needs one comparison per item if the lists differ in one place. */
export function listDiff<T extends object>(previous: readonly T[], next: readonly T[]): ListDiff<T> {
  if (previous === next) return { removed: [], added: [] };
  let commonPrefixLength = 0;
  while (
    commonPrefixLength < previous.length &&
    commonPrefixLength < next.length &&
    previous[commonPrefixLength] === next[commonPrefixLength]
  )
    commonPrefixLength++;
  let commonSuffixLength = 0;
  const maxSuffixLength = Math.min(previous.length, next.length) - commonPrefixLength;
  while (
    commonSuffixLength < maxSuffixLength &&
    previous[previous.length - 1 - commonSuffixLength] === next[next.length - 1 - commonSuffixLength]
  )
    commonSuffixLength++;
  const previousItems = previous.slice(commonPrefixLength, previous.length - commonSuffixLength);
  const nextItems = next.slice(commonPrefixLength, next.length - commonSuffixLength);
  const [previousSet, nextSet] = [new Set(previousItems), new Set(nextItems)];
  return {
    removed: previousItems.filter((item) => !nextSet.has(item)),
    added: nextItems.filter((item) => !previousSet.has(item)),
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
  for (const item of addedItems) remainingItems.splice(insertionIndex(remainingItems, item, compare), 0, item);
  return remainingItems;
}

function insertionIndex<T>(list: readonly T[], item: T, compare: (a: T, b: T) => number): number {
  let [lowIndex, highIndex] = [0, list.length];
  while (lowIndex < highIndex) {
    const middle = (lowIndex + highIndex) >>> 1;
    if (compare(list[middle]!, item) <= 0) lowIndex = middle + 1;
    else highIndex = middle;
  }
  return lowIndex;
}
