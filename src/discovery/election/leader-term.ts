/** How long a leader may act by its own word: until the deadline of the last renewal that was taken, counted from its sending. */

/** Milliseconds on two clocks, of any beginning. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/**
 * What has passed, as the clock says that says most. The monotonic one stands still while a machine is suspended, the wall clock jumps
 * as it is set; one that goes back counts for nothing.
 */
export function elapsedMs(since: Moment, now: Moment): number {
  return Math.max(now.monotonicMs - since.monotonicMs, now.wallMs - since.wallMs);
}

/** This moment, by both clocks of this process. */
export function processMoment(): Moment {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}
