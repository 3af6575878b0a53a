import type { Steps } from '../../runtime/turns.ts';

const runLength = 512;

/** Builds a sorted copy (stable) in steps. */
export function* sorting<T>(items: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  let runs: T[][] = [];
  for (let start = 0; start < items.length; start += runLength) {
    runs.push(items.slice(start, start + runLength).sort(compare));
    yield;
  }
  while (runs.length > 1) {
    const mergedLists: T[][] = [];
    for (let runIndex = 0; runIndex < runs.length; runIndex += 2) {
      const [firstRun, other] = [runs[runIndex]!, runs[runIndex + 1]];
      mergedLists.push(other === undefined ? firstRun : yield* merging(firstRun, other, compare));
    }
    runs = mergedLists;
  }
  return runs[0] ?? [];
}

function* merging<T>(firstRun: readonly T[], other: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  const mergedList: T[] = [];
  let [firstIndex, secondIndex] = [0, 0];
  while (firstIndex < firstRun.length && secondIndex < other.length) {
    mergedList.push(
      compare(firstRun[firstIndex]!, other[secondIndex]!) <= 0 ? firstRun[firstIndex++]! : other[secondIndex++]!,
    );
    if (mergedList.length % runLength === 0) yield;
  }
  while (firstIndex < firstRun.length) mergedList.push(firstRun[firstIndex++]!);
  while (secondIndex < other.length) mergedList.push(other[secondIndex++]!);
  return mergedList;
}
