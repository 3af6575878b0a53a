/** How long a Lease is held without a word, and what follows from that (spec/kubernetes.md §2). */
import type { LeaseTimes } from '../../../machines/discovery/election/leader.machine.ts';

/** How long a Lease is held, as in client-go: 15 s, of which the holder uses 10, with a renewal every 2. */
export const usualLeaseMs = 15_000;
/** A Lease says whole seconds. In fewer, an answer that takes a second would cost the term. */
export const shortestLeaseMs = 3_000;

/** An answer may always take so long. */
const leastAnswerMs = 1_000;

/** @param leaseMs {@link shortestLeaseMs} at least */
export function leaseTimesOf(leaseMs: number): LeaseTimes {
  const termMs = Math.floor((leaseMs * 2) / 3);
  return {
    ...{ leaseMs, termMs, retryMs: Math.floor(termMs / 5) },
    answerMs: Math.max(leastAnswerMs, Math.floor(termMs / 3)),
  };
}

/** Limit of a write: what is begun in the last moment of a term is over before anybody else may lead. */
export function writeLimitMs({ leaseMs, termMs }: LeaseTimes): number {
  return Math.floor((leaseMs - termMs) * 0.8);
}

/** Why nobody could hold a Lease by these times, or two could; undefined: nothing. */
export function mistakeIn({ leaseMs, termMs, retryMs }: LeaseTimes): string | undefined {
  if (leaseMs <= termMs) return 'the duration of a Lease must be longer than its renew deadline';
  // The spread of looks and renewals, as client-go's JitterFactor.
  if (termMs <= 1.2 * retryMs) return 'the renew deadline of a Lease must be longer than its retry period';
  return undefined;
}
