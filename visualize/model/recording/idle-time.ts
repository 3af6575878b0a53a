/** Idle hours: times in which nothing on the timeline changes. They are folded, so that what happened between them is readable. */

/** A stretch of the trace's clock in which nothing on the timeline changes. */
export interface IdleTime {
  readonly from: number;
  readonly to: number;
}

/** Shorter pauses are part of what happens: a drain, a back-off. */
const leastMs = 120_000;
/** A fold has room for its length in words, unless there are too many of them. */
const foldPixels = 62;
const fewestPixels = 14;
/** Of the screen; the rest is for what happened. */
const mostOfWidth = 0.5;

/** Collects them while a trace is read. */
export class IdleTimes {
  readonly #found: IdleTime[] = [];
  #last: number | undefined;

  /** Something changed on the timeline. To be told in the order of time. */
  note(t: number): void {
    if (this.#last !== undefined && t - this.#last >= leastMs) this.#found.push({ from: this.#last, to: t });
    this.#last = t;
  }

  /** With the one that goes on at a time, if there is one. */
  until(end: number): readonly IdleTime[] {
    const last = this.#last;
    return last !== undefined && end - last >= leastMs ? [...this.#found, { from: last, to: end }] : this.#found;
  }
}

/**
 * Those that are worth folding on a timeline of some pixels: they are far longer than what happens between them. When there are
 * more than it has room for, the longest.
 */
export function foldsOf(
  idle: readonly IdleTime[],
  whole: { readonly from: number; readonly to: number },
  width: number,
): { readonly folds: readonly IdleTime[]; readonly pixels: number } {
  const most = Math.floor((width * mostOfWidth) / fewestPixels);
  const longest = [...idle].sort((a, b) => lengthOf(b) - lengthOf(a)).slice(0, Math.max(0, most));
  let folded: IdleTime[] = [];
  let left = whole.to - whole.from;
  for (const [i, each] of longest.entries()) {
    left -= lengthOf(each);
    // What happens between the folds, each time: a pause that is not much longer than it is no idle time.
    if (lengthOf(each) >= (timesLonger * Math.max(left, 1)) / (i + 1)) folded = longest.slice(0, i + 1);
  }
  const pixels = Math.min(foldPixels, (width * mostOfWidth) / Math.max(1, folded.length));
  return { folds: folded.sort((a, b) => a.from - b.from), pixels };
}

const timesLonger = 3;

function lengthOf({ from, to }: IdleTime): number {
  return to - from;
}
