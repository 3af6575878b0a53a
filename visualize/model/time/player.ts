/** Plays at the pace of the program, with idle times cut short. */

/** Maximum wait in milliseconds for the next record at pace 1. */
const maxGapMs = 1_500;

export const paces = [0.25, 1, 4, 16] as const;

/** `ms` is how long a record is shown, and `rate` that of the trace's clock in that time. */
export function delayBetween(
  t: number,
  nextTime: number,
  speed: number,
): { readonly ms: number; readonly rate: number } {
  const gap = Math.max(0, nextTime - t);
  const ms = Math.min(gap, maxGapMs) / speed;
  return { ms, rate: ms === 0 ? 0 : gap / ms };
}

/** @param position the shown place, and for how long it has been shown */
export function nextPosition(
  timeAt: (index: number) => number,
  lastIndex: number,
  position: { readonly index: number; readonly shownMs: number },
  speed: number,
): { readonly index: number; readonly shownMs: number; readonly elapsed: number } {
  let { index, shownMs } = position;
  while (index < lastIndex) {
    const { ms, rate } = delayBetween(timeAt(index), timeAt(index + 1), speed);
    if (shownMs < ms) return { index, shownMs, elapsed: shownMs * rate };
    shownMs -= ms;
    index++;
  }
  return { index, shownMs: 0, elapsed: 0 };
}
