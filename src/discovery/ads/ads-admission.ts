/** How many new streams a second are let in (`PILOT_MAX_REQUESTS_PER_SECOND`, spec/discovery.md §6.4). */

const longestWaitMs = 1_000;

export interface Admission {
  /** Milliseconds to wait before the stream may begin; undefined when it would be too long: refuse it. */
  admit(): number | undefined;
}

/**
 * A token bucket of one token: streams are spaced evenly, and one that would wait for more than a second is refused.
 *
 * @param perSecond 0 or less: no limit.
 * @param now monotonic milliseconds.
 */
export function createAdmission(perSecond: number, now: () => number): Admission {
  if (perSecond <= 0) return { admit: () => 0 };
  const spacingMs = 1_000 / perSecond;
  let next = 0;
  return {
    admit() {
      const time = now();
      const waitMs = Math.max(0, next - time);
      if (waitMs > longestWaitMs) return undefined;
      next = Math.max(next, time) + spacingMs;
      return waitMs;
    },
  };
}
