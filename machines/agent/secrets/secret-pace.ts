/** When a certificate is renewed, and when a try that failed is made again (spec/agent.md §7.1, §7.4; spec/identity.md §8). */

/** A timer of Node holds 24.8 days at the most, and stands still while the machine sleeps: the clock is looked at this often. */
export const maxTimerMs = 3_600_000;
/** However short a life is: an authority whose certificates have no life left is not asked without a pause. */
const minWaitMs = 1_000;

const firstPauseMs = 500;
const growth = 1.5;
/** While there is no certificate. */
const maxPauseMs = 60_000;
/** While there is one that still counts: everybody spreads over so long a time after an outage. */
const maxWindowMs = 600_000;
const minPauseMs = 500;
/** After so many failures pauses grow no more, and a counter of failures has this bound. */
export const maxFailures = 20;

export interface CertificateLifetime {
  readonly fromMs: number;
  readonly endsAtMs: number;
}

export interface RenewalGrace {
  /** Share of a certificate's life that is left when it is renewed. */
  readonly ratio: number;
  /** What is added to the ratio or taken from it, at the most. */
  readonly jitter: number;
}

/**
 * When a certificate is to be renewed. An identity's certificates are drawn for once each: drawn at each look, almost everybody
 * would renew at the beginning of the window (spec/identity.md §2).
 *
 * @param draw from 0 to 1
 */
export function renewalAtMs(
  { fromMs, endsAtMs }: CertificateLifetime,
  { ratio, jitter }: RenewalGrace,
  draw: number,
): number {
  const drawn = Math.min(1, Math.max(0, ratio + (2 * draw - 1) * jitter));
  return Math.max(fromMs, endsAtMs - drawn * Math.max(0, endsAtMs - fromMs));
}

/** Until the clock is looked at again. */
export function waitMs(untilMs: number, nowMs: number): number {
  return Math.min(maxTimerMs, Math.max(minWaitMs, untilMs - nowMs));
}

/** Everybody has a certificate of another root so soon after theirs was tainted, if the authority keeps up. */
const taintedWindowMs = 30_000;

/**
 * Until a certificate of a tainted root is renewed: anywhere in half a minute, and in a quarter of what is left at the most. An
 * authority that goes on to sign with that root is not asked without a pause.
 *
 * @param draw from 0 to 1
 */
export function taintedRenewalMs(leftMs: number, draw: number): number {
  return Math.max(minPauseMs, Math.min(taintedWindowMs, leftMs / 4) * draw);
}

export interface ObtainFailure {
  /** Failures in a row, this one included. */
  readonly failures: number;
  /** A random number from 0 to 1. */
  readonly draw: number;
  /** What is left of the certificate in force; 0 where there is none. */
  readonly leftMs: number;
  /** What the authority asked for; 0: nothing. */
  readonly pushbackMs: number;
}

/**
 * Until the next try. Without a certificate soon: half a second, growing to a minute, more or less by half. With one in full
 * jitter: anywhere in a window that grows to ten minutes, and to a quarter of what is left at the most. Never before the time
 * that the authority asked for.
 */
export function pauseMs({ failures, draw, leftMs, pushbackMs }: ObtainFailure): number {
  const grown = firstPauseMs * growth ** (Math.min(failures, maxFailures) - 1);
  const jitteredMs =
    leftMs > 0 ? Math.min(grown, maxWindowMs, leftMs / 4) * draw : Math.min(grown, maxPauseMs / growth) * (0.5 + draw);
  const requestedMs = Math.min(pushbackMs, maxWindowMs);
  // Others were told the same time: this one comes a little later than that, each by a time of its own.
  return Math.round(Math.max(minPauseMs, jitteredMs, requestedMs * (1 + draw / 2)));
}

/** Until files that cannot be used are read again: 50 ms, doubling to a minute (spec/agent.md §7.6). */
export function filesPauseMs(failures: number): number {
  return Math.min(60_000, 50 * 2 ** (Math.min(failures, maxFailures) - 1));
}
