/** A term lasts from the time at which the last successful renewal was sent to that renewal's deadline. */

/** Each clock has an arbitrary origin. */
export interface ClockReading {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/**
 * Returns the longer of the times on both clocks, because the monotonic clock stops while a machine is suspended, and the wall clock can be changed.
 * A wall clock that was set back is ignored.
 */
export function elapsedMs(start: ClockReading, end: ClockReading): number {
  return Math.max(end.monotonicMs - start.monotonicMs, end.wallMs - start.wallMs);
}

export function readProcessClocks(): ClockReading {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}
