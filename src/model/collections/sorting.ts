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
    const merged: T[][] = [];
    for (let runIndex = 0; runIndex < runs.length; runIndex += 2) {
      const [firstRun, other] = [runs[runIndex]!, runs[runIndex + 1]];
      merged.push(other === undefined ? firstRun : yield* merging(firstRun, other, compare));
    }
    runs = merged;
  }
  return runs[0] ?? [];
}

function* merging<T>(firstRun: readonly T[], other: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  const merged: T[] = [];
  let [firstIndex, right] = [0, 0];
  while (firstIndex < firstRun.length && right < other.length) {
    merged.push(compare(firstRun[firstIndex]!, other[right]!) <= 0 ? firstRun[firstIndex++]! : other[right++]!);
    if (merged.length % runLength === 0) yield;
  }
  while (firstIndex < firstRun.length) merged.push(firstRun[firstIndex++]!);
  while (right < other.length) merged.push(other[right++]!);
  return merged;
}
