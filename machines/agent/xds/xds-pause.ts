export type UpstreamCredential = 'token' | 'certificate';

export interface UpstreamFailures {
  /** Consecutive failures, up to {@link maxFailures}. */
  readonly count: number;
  readonly isRefusal: boolean;
  readonly retryAfterMs: number;
  /** Credential of the next connection: the token, or after its rejection the certificate, as long as that is accepted. */
  readonly credential: UpstreamCredential;
}

export const noFailures: UpstreamFailures = { count: 0, isRefusal: false, retryAfterMs: 0, credential: 'token' };

/** Keeps the credential. */
export function clearFailures({ credential }: UpstreamFailures): UpstreamFailures {
  return { ...noFailures, credential };
}

export const maxFailures = 8;

const firstMs = 200;
/** All streams reconnect within 2 s of a restart of the control plane. */
const maxPauseMs = 1_500;
/** Usually, a rejected agent is accepted only after a change of the configuration. */
const maxRefusalPauseMs = 15_000;

export function withFailure(
  { count, credential }: UpstreamFailures,
  { isRefusal, retryAfterMs }: { isRefusal: boolean; retryAfterMs: number },
): UpstreamFailures {
  const nextCredential = credential === 'token' && isRefusal ? 'certificate' : 'token';
  return { count: Math.min(count + 1, maxFailures), isRefusal, retryAfterMs, credential: nextCredential };
}

/**
 * Half of the pause is random, so that agents do not reconnect simultaneously. A requested delay is a lower bound.
 *
 * @param random from 0 to 1
 */
export function pauseAfter({ count, isRefusal, retryAfterMs, credential }: UpstreamFailures, random: number): number {
  if (count === 0) return 0;
  const maxMs = isRefusal ? maxRefusalPauseMs : maxPauseMs;
  // After an expired token the certificate is tried soon.
  const pause = credential === 'certificate' ? firstMs : Math.min(maxMs, firstMs * 2 ** (count - 1));
  return Math.round(Math.max(pause * (0.5 + random / 2), retryAfterMs * (1 + random / 4)));
}
