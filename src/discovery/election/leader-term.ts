/** Time in which a leader may act without contacting the server: from sending the last successful renewal to its deadline. */

/** Milliseconds on two clocks, each with an arbitrary origin. */
export interface ClockReading {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/**
 * Returns the longer of the times on both clocks, because the monotonic clock stops while a machine is suspended, and the wall clock can be changed
 * (ignored if set back).
 */
export function elapsedMs(since: ClockReading, now: ClockReading): number {
  return Math.max(now.monotonicMs - since.monotonicMs, now.wallMs - since.wallMs);
}

export function readProcessClocks(): ClockReading {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}
