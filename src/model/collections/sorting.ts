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
    for (let at = 0; at < runs.length; at += 2) {
      const [one, other] = [runs[at]!, runs[at + 1]];
      merged.push(other === undefined ? one : yield* merging(one, other, compare));
    }
    runs = merged;
  }
  return runs[0] ?? [];
}

function* merging<T>(one: readonly T[], other: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  const merged: T[] = [];
  let [left, right] = [0, 0];
  while (left < one.length && right < other.length) {
    merged.push(compare(one[left]!, other[right]!) <= 0 ? one[left++]! : other[right++]!);
    if (merged.length % runLength === 0) yield;
  }
  while (left < one.length) merged.push(one[left++]!);
  while (right < other.length) merged.push(other[right++]!);
  return merged;
}
