/** In an idle time, nothing on the timeline changes. */

export interface IdleTime {
  readonly from: number;
  readonly to: number;
}

/** Shorter idle times belong to the activity, such as a drain or a backoff. */
const minIdleMs = 120_000;
/** Width of a fold with space for its duration. If there are too many folds, they are narrower. */
const foldPixels = 62;
const minFoldPixels = 14;
/** All folds together take at most this share of the timeline's width. */
const maxWidthShare = 0.5;

export class IdleTimes {
  readonly #idleTimes: IdleTime[] = [];
  #lastChangeAt: number | undefined;

  /** Calls must be in the order of time. */
  recordChange(t: number): void {
    if (this.#lastChangeAt !== undefined && t - this.#lastChangeAt >= minIdleMs)
      this.#idleTimes.push({ from: this.#lastChangeAt, to: t });
    this.#lastChangeAt = t;
  }

  /** Includes an idle time that is still open at `end`. */
  idleTimesUntil(end: number): readonly IdleTime[] {
    const lastChangeAt = this.#lastChangeAt;
    return lastChangeAt !== undefined && end - lastChangeAt >= minIdleMs
      ? [...this.#idleTimes, { from: lastChangeAt, to: end }]
      : this.#idleTimes;
  }
}

/** Folds idle times that are far longer than the activity between them, or the longest if there are too many. */
export function foldsOf(
  idle: readonly IdleTime[],
  wholeSpan: { readonly from: number; readonly to: number },
  width: number,
): { readonly folds: readonly IdleTime[]; readonly pixels: number } {
  const maxFolds = Math.floor((width * maxWidthShare) / minFoldPixels);
  const foldedIdleTimes = [...idle].sort((a, b) => lengthOf(b) - lengthOf(a)).slice(0, Math.max(0, maxFolds));
  let foldedTimes: IdleTime[] = [];
  let remainingMs = wholeSpan.to - wholeSpan.from;
  for (const [i, idleTime] of foldedIdleTimes.entries()) {
    remainingMs -= lengthOf(idleTime);
    // Folds a pause only if it is much longer than the share of activity per fold.
    if (lengthOf(idleTime) >= (minFoldRatio * Math.max(remainingMs, 1)) / (i + 1))
      foldedTimes = foldedIdleTimes.slice(0, i + 1);
  }
  const pixels = Math.min(foldPixels, (width * maxWidthShare) / Math.max(1, foldedTimes.length));
  return { folds: foldedTimes.sort((a, b) => a.from - b.from), pixels };
}

const minFoldRatio = 3;

function lengthOf({ from, to }: IdleTime): number {
  return to - from;
}
