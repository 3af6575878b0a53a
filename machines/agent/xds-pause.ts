/** How long the control plane is left alone after it could not be had. */

export interface Failures {
  /** In a row; it grows no more at {@link mostFailures}. */
  readonly count: number;
  /** It answered, and did not want this agent. */
  readonly isRefusal: boolean;
  /** So long it asked to be left alone. */
  readonly retryAfterMs: number;
}

export const noFailures: Failures = { count: 0, isRefusal: false, retryAfterMs: 0 };

export const mostFailures = 8;

const firstMs = 200;
/** One that comes back is to have its streams within 2 s. */
const longestMs = 1_500;
/** One that refuses has to be mended by somebody. */
const longestAfterRefusalMs = 15_000;

/** One more failure. */
export function failedAgain(
  { count }: Failures,
  { isRefusal, retryAfterMs }: { isRefusal: boolean; retryAfterMs: number },
): Failures {
  return { count: Math.min(count + 1, mostFailures), isRefusal, retryAfterMs };
}

/**
 * Doubles with each failure; half of it is by chance, so that a thousand agents do not come back in the same moment. What was
 * asked for is kept to, and spread as well.
 *
 * @param chance from 0 to 1
 */
export function pauseAfter({ count, isRefusal, retryAfterMs }: Failures, chance: number): number {
  if (count === 0) return 0;
  const longest = isRefusal ? longestAfterRefusalMs : longestMs;
  const pause = Math.min(longest, firstMs * 2 ** (count - 1));
  return Math.round(Math.max(pause * (0.5 + chance / 2), retryAfterMs * (1 + chance / 4)));
}
