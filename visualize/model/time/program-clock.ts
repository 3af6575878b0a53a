/** The clock of the open live program. */
import { signal } from '@preact/signals';

/** Maximum difference of two readings of the same host's clock; the latency of a record is smaller. */
const sameMs = 1_000;

/** Time of the program (`t` of the trace) at a time of the page (`performance.now()`). */
interface ClockReading {
  readonly t: number;
  readonly at: number;
}

const reading = signal<ClockReading | undefined>(undefined);

/**
 * Stores the clock reading of the program's host.
 *
 * @param startedAt wall clock at `t` = 0
 * @param now wall clock of the program's host; `undefined` if unknown
 */
export function setProgramClock(startedAt: string, now: number | undefined, at = performance.now()): void {
  const t = now === undefined ? Number.NaN : now - Date.parse(startedAt);
  reading.value = Number.isFinite(t) && t >= 0 ? { t, at } : undefined;
}

/** Uses the time of a new record, which is more exact than the wall clock, unless the record is an old one. */
export function noteRecord(t: number, at = performance.now()): void {
  const known = programTime(at);
  if (known === undefined || t > known - sameMs) reading.value = { t, at };
}

/** Current `t` of the program; `undefined` while unknown. */
export function programTime(at = performance.now()): number | undefined {
  const known = reading.peek();
  return known === undefined ? undefined : known.t + (at - known.at);
}
