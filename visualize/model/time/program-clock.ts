/** The clock of the live program that is open: most of the time it tells nothing, and time goes by all the same. */
import { signal } from '@preact/signals';

/** Two clocks of one host, read one after the other, are not further apart; what a record needs on its way is less. */
const sameMs = 1_000;

/** The program's time (`t` of the trace) at a moment of this page's (`performance.now()`). */
interface ClockReading {
  readonly t: number;
  readonly at: number;
}

const reading = signal<ClockReading | undefined>(undefined);

/**
 * Takes note of what the program's host says.
 *
 * @param startedAt wall clock at `t` = 0
 * @param now wall clock of the program's host; undefined where it is not known
 */
export function setProgramClock(startedAt: string, now: number | undefined, at = performance.now()): void {
  const t = now === undefined ? Number.NaN : now - Date.parse(startedAt);
  reading.value = Number.isFinite(t) && t >= 0 ? { t, at } : undefined;
}

/** A record has come: it tells the time better than the wall clock, unless it is an old one. */
export function noteRecord(t: number, at = performance.now()): void {
  const known = programTime(at);
  if (known === undefined || t > known - sameMs) reading.value = { t, at };
}

/** `t` of the program at this moment; undefined as long as nothing is known of it. */
export function programTime(at = performance.now()): number | undefined {
  const known = reading.peek();
  return known === undefined ? undefined : known.t + (at - known.at);
}
