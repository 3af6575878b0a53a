/** How long the control plane is left alone after it could not be had. */

/**
 * What the control plane is to know this agent by: its token, or the certificate that it has by that token. Neither is always good: a
 * token ends and is not replaced, an authority is replaced and does not know what the one before has signed.
 */
export type Shown = 'token' | 'certificate';

export interface Failures {
  /** Failures in a row, counted up to {@link mostFailures}. */
  readonly count: number;
  /** The control plane answered, and did not want this agent. */
  readonly isRefusal: boolean;
  /** How long the control plane asked to be left alone. */
  readonly retryAfterMs: number;
  /** What is shown next: the certificate when the token was refused, and as long as it is good. */
  readonly shows: Shown;
}

export const noFailures: Failures = { count: 0, isRefusal: false, retryAfterMs: 0, shows: 'token' };

/** No failures any more; what was shown stays. */
export function forgotten({ shows }: Failures): Failures {
  return { ...noFailures, shows };
}

export const mostFailures = 8;

const firstMs = 200;
/** One that comes back is to have its streams within 2 s. */
const longestMs = 1_500;
/** One that refuses has to be mended by somebody. */
const longestAfterRefusalMs = 15_000;

/** One more failure. */
export function failedAgain(
  { count, shows }: Failures,
  { isRefusal, retryAfterMs }: { isRefusal: boolean; retryAfterMs: number },
): Failures {
  const next = shows === 'token' && isRefusal ? 'certificate' : 'token';
  return { count: Math.min(count + 1, mostFailures), isRefusal, retryAfterMs, shows: next };
}

/**
 * Doubles with each failure; half of it is by chance, so that a thousand agents do not come back in the same moment. What was
 * asked for is kept to, and spread as well.
 *
 * @param chance from 0 to 1
 */
export function pauseAfter({ count, isRefusal, retryAfterMs, shows }: Failures, chance: number): number {
  if (count === 0) return 0;
  const longest = isRefusal ? longestAfterRefusalMs : longestMs;
  // A token that has ended is no reason to keep Envoy waiting: the certificate is shown soon.
  const pause = shows === 'certificate' ? firstMs : Math.min(longest, firstMs * 2 ** (count - 1));
  return Math.round(Math.max(pause * (0.5 + chance / 2), retryAfterMs * (1 + chance / 4)));
}
