import type { LeaseTimes } from '../../../machines/discovery/election/leader.machine.ts';

/** As in client-go: the holder uses 10 of these 15 s, and renews every 2 s. */
export const defaultLeaseMs = 15_000;
/** Leases require whole seconds. If this were shorter, a response that takes a second would end the term. */
export const minLeaseMs = 3_000;

const minResponseMs = 1_000;

/** @param leaseMs at least {@link minLeaseMs} */
export function leaseTimesOf(leaseMs: number): LeaseTimes {
  const termMs = Math.floor((leaseMs * 2) / 3);
  return {
    ...{ leaseMs, termMs, retryMs: Math.floor(termMs / 5) },
    requestLimitMs: Math.max(minResponseMs, Math.floor(termMs / 3)),
  };
}

/** A write that begins at the end of a term must end before another replica may lead. */
export function writeLimitMs({ leaseMs, termMs }: LeaseTimes): number {
  return Math.floor((leaseMs - termMs) * 0.8);
}

/** Why these times allow no leader, or two; `undefined` if they are valid. */
export function leaseTimesProblem({ leaseMs, termMs, retryMs }: LeaseTimes): string | undefined {
  if (leaseMs <= termMs) return 'the duration of a Lease must be longer than its renew deadline';
  // Jitter of reads and renewals (JitterFactor in client-go).
  if (termMs <= 1.2 * retryMs) return 'the renew deadline of a Lease must be longer than its retry period';
  return undefined;
}
