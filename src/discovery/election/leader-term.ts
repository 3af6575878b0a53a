/** Time in which a leader may act without contacting the server: until the deadline of the last successful renewal, counted from when it was sent. */

/** Milliseconds of two clocks with arbitrary origins. */
export interface ClockReading {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/**
 * The longer time of both clocks. The monotonic clock stops while a machine is suspended, and the wall clock may be changed. A clock that was set
 * back is ignored.
 */
export function elapsedMs(since: ClockReading, now: ClockReading): number {
  return Math.max(now.monotonicMs - since.monotonicMs, now.wallMs - since.wallMs);
}

export function processMoment(): ClockReading {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}
