import type { Steps } from '../../runtime/turns.ts';

const runLength = 512;

/** The sort is stable. */
export function* sortInSteps<T>(items: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  let sortedRuns: T[][] = [];
  for (let start = 0; start < items.length; start += runLength) {
    sortedRuns.push(items.slice(start, start + runLength).sort(compare));
    yield;
  }
  while (sortedRuns.length > 1) {
    const mergedLists: T[][] = [];
    for (let runIndex = 0; runIndex < sortedRuns.length; runIndex += 2) {
      const [firstRun, secondRun] = [sortedRuns[runIndex]!, sortedRuns[runIndex + 1]];
      mergedLists.push(secondRun === undefined ? firstRun : yield* mergeInSteps(firstRun, secondRun, compare));
    }
    sortedRuns = mergedLists;
  }
  return sortedRuns[0] ?? [];
}

function* mergeInSteps<T>(
  firstRun: readonly T[],
  secondRun: readonly T[],
  compare: (a: T, b: T) => number,
): Steps<T[]> {
  const mergedList: T[] = [];
  let [firstIndex, secondIndex] = [0, 0];
  while (firstIndex < firstRun.length && secondIndex < secondRun.length) {
    mergedList.push(
      compare(firstRun[firstIndex]!, secondRun[secondIndex]!) <= 0
        ? firstRun[firstIndex++]!
        : secondRun[secondIndex++]!,
    );
    if (mergedList.length % runLength === 0) yield;
  }
  while (firstIndex < firstRun.length) mergedList.push(firstRun[firstIndex++]!);
  while (secondIndex < secondRun.length) mergedList.push(secondRun[secondIndex++]!);
  return mergedList;
}
