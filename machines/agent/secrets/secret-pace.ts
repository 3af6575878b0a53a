/** Node limits a timer to 24.8 days, and a timer stops while the machine sleeps, so the clock is checked at least this often. */
export const maxTimerMs = 3_600_000;
/** The minimum applies to expired certificates too, so that the authority is not called continuously. */
const minWaitMs = 1_000;

const firstPauseMs = 500;
const backoffFactor = 1.5;
const maxPauseMs = 60_000;
/** With a valid certificate, this window spreads the retries of all workloads after an outage. */
const maxWindowMs = 600_000;
const minPauseMs = 500;
/** The backoff no longer grows after this number. */
export const maxFailures = 20;

export interface CertificateLifetime {
  readonly fromMs: number;
  readonly endsAtMs: number;
}

export interface RenewalGrace {
  /** Share of the remaining lifetime at which the certificate is renewed. */
  readonly ratio: number;
  readonly jitter: number;
}

/**
 * The random number is drawn once per certificate: if it were drawn at each check, most workloads would renew at the beginning of the window.
 *
 * @param random from 0 to 1
 */
export function renewalAtMs(
  { fromMs, endsAtMs }: CertificateLifetime,
  { ratio, jitter }: RenewalGrace,
  random: number,
): number {
  const drawnRatio = Math.min(1, Math.max(0, ratio + (2 * random - 1) * jitter));
  return Math.max(fromMs, endsAtMs - drawnRatio * Math.max(0, endsAtMs - fromMs));
}

export function waitMs(untilMs: number, nowMs: number): number {
  return Math.min(maxTimerMs, Math.max(minWaitMs, untilMs - nowMs));
}

/** Certificates of a tainted root are renewed within this time, if the authority can sign that many. */
const taintedWindowMs = 30_000;

/**
 * Random delay within {@link taintedWindowMs}, and within a quarter of the remaining lifetime.
 *
 * @param random from 0 to 1
 */
export function taintedRenewalMs(remainingMs: number, random: number): number {
  return Math.max(minPauseMs, Math.min(taintedWindowMs, remainingMs / 4) * random);
}

export interface ObtainFailure {
  /** Consecutive failures, including this one; once the certificate has expired, only those after the expiry. */
  readonly failures: number;
  readonly draw: number;
  /** Remaining lifetime of the current certificate; 0 without one. */
  readonly leftMs: number;
  /** Pause that the authority requested. */
  readonly pushbackMs: number;
}

/**
 * Without a certificate, the pause grows from 0.5 s to 60 s, ±50 %. With one, the pause is random in a window that grows to 10 min, at most a quarter
 * of the remaining lifetime. The delay that the authority requested is a minimum.
 */
export function pauseMs({ failures, draw, leftMs, pushbackMs }: ObtainFailure): number {
  const exponentialMs = firstPauseMs * backoffFactor ** (Math.min(failures, maxFailures) - 1);
  const jitteredMs =
    leftMs > 0
      ? Math.min(exponentialMs, maxWindowMs, leftMs / 4) * draw
      : Math.min(exponentialMs, maxPauseMs / backoffFactor) * (0.5 + draw);
  const requestedMs = Math.min(pushbackMs, maxWindowMs);
  // All rejected clients receive the same delay, so each adds a random part.
  return Math.round(Math.max(minPauseMs, jitteredMs, requestedMs * (1 + draw / 2)));
}

/** Files are read again after 50 ms, doubling up to one minute. */
export function filesPauseMs(failures: number): number {
  return Math.min(60_000, 50 * 2 ** (Math.min(failures, maxFailures) - 1));
}
