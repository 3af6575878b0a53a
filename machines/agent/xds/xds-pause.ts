/** How long the control plane is left alone after it could not be had. */

/**
 * What the control plane is to know this agent by: its token, or the certificate that it has by that token. Neither is always good: a
 * token ends and is not replaced, an authority is replaced and does not know what the one before has signed.
 */
export type UpstreamCredential = 'token' | 'certificate';

export interface UpstreamFailures {
  /** Failures in a row, counted up to {@link maxFailures}. */
  readonly count: number;
  /** The control plane answered, and did not want this agent. */
  readonly isRefusal: boolean;
  /** How long the control plane asked to be left alone. */
  readonly retryAfterMs: number;
  /** What is shown next: the certificate when the token was refused, and as long as it is good. */
  readonly shows: UpstreamCredential;
}

export const noFailures: UpstreamFailures = { count: 0, isRefusal: false, retryAfterMs: 0, shows: 'token' };

/** No failures any more; what was shown stays. */
export function withoutFailures({ shows }: UpstreamFailures): UpstreamFailures {
  return { ...noFailures, shows };
}

export const maxFailures = 8;

const firstMs = 200;
/** One that comes back is to have its streams within 2 s. */
const maxPauseMs = 1_500;
/** One that refuses has to be mended by somebody. */
const maxRefusalPauseMs = 15_000;

/** One more failure. */
export function withFailure(
  { count, shows }: UpstreamFailures,
  { isRefusal, retryAfterMs }: { isRefusal: boolean; retryAfterMs: number },
): UpstreamFailures {
  const next = shows === 'token' && isRefusal ? 'certificate' : 'token';
  return { count: Math.min(count + 1, maxFailures), isRefusal, retryAfterMs, shows: next };
}

/**
 * Doubles with each failure; half of it is by chance, so that a thousand agents do not come back in the same moment. What was
 * asked for is kept to, and spread as well.
 *
 * @param chance from 0 to 1
 */
export function pauseAfter({ count, isRefusal, retryAfterMs, shows }: UpstreamFailures, chance: number): number {
  if (count === 0) return 0;
  const maxMs = isRefusal ? maxRefusalPauseMs : maxPauseMs;
  // A token that has ended is no reason to keep Envoy waiting: the certificate is shown soon.
  const pause = shows === 'certificate' ? firstMs : Math.min(maxMs, firstMs * 2 ** (count - 1));
  return Math.round(Math.max(pause * (0.5 + chance / 2), retryAfterMs * (1 + chance / 4)));
}
