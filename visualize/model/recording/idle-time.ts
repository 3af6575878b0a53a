/**
 * Idle times, in which nothing on the timeline changes. They are folded, so that the activity between them is
 * readable.
 */

/** A range of the trace's clock in which nothing on the timeline changes. */
export interface IdleTime {
  readonly from: number;
  readonly to: number;
}

/** Shorter pauses belong to the activity: a drain, a back-off. */
const leastMs = 120_000;
/** Width of a fold, enough for its duration text, unless there are too many folds. */
const foldPixels = 62;
const fewestPixels = 14;
/** Maximum share of the screen; the rest is for activity. */
const mostOfWidth = 0.5;

/** Collects idle times while a trace is read. */
export class IdleTimes {
  readonly #found: IdleTime[] = [];
  #last: number | undefined;

  /** Records a change on the timeline. Must be called in the order of time. */
  note(t: number): void {
    if (this.#last !== undefined && t - this.#last >= leastMs) this.#found.push({ from: this.#last, to: t });
    this.#last = t;
  }

  /** Includes the idle time that is still open at `end`, if there is one. */
  until(end: number): readonly IdleTime[] {
    const last = this.#last;
    return last !== undefined && end - last >= leastMs ? [...this.#found, { from: last, to: end }] : this.#found;
  }
}

/**
 * Idle times to fold on a timeline of this width: those far longer than the activity between them. If there are too
 * many, the longest.
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
    // Share of activity per fold: a pause that is not much longer than that is not folded.
    if (lengthOf(each) >= (timesLonger * Math.max(left, 1)) / (i + 1)) folded = longest.slice(0, i + 1);
  }
  const pixels = Math.min(foldPixels, (width * mostOfWidth) / Math.max(1, folded.length));
  return { folds: folded.sort((a, b) => a.from - b.from), pixels };
}

const timesLonger = 3;

function lengthOf({ from, to }: IdleTime): number {
  return to - from;
}
