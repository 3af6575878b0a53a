/** Time for which a leader may act without contacting the server: until the deadline of the last successful renewal, counted from its sending. */

/** Milliseconds of two clocks, with any origin. */
export interface ClockReading {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/**
 * Elapsed time by the clock that shows more. The monotonic clock stops while a machine is suspended, and the wall clock may be changed; one that goes
 * backwards is ignored.
 */
export function elapsedMs(since: ClockReading, now: ClockReading): number {
  return Math.max(now.monotonicMs - since.monotonicMs, now.wallMs - since.wallMs);
}

export function processMoment(): ClockReading {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}
