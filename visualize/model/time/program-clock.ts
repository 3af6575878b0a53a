import { signal } from '@preact/signals';

/** Maximum difference between two readings of the same clock; the latency of a record is smaller. */
const sameMs = 1_000;

/** Time of the program (`t` of the trace) at a time of the page (`performance.now()`). */
interface ClockReading {
  readonly t: number;
  readonly pageTime: number;
}

const clockReading = signal<ClockReading | undefined>(undefined);

/**
 * Stores the clock reading of the program's host.
 *
 * @param startedAt wall clock at `t` = 0
 * @param now wall clock of the program's host; `undefined` if unknown
 */
export function setProgramClock(startedAt: string, now: number | undefined, readAtMs = performance.now()): void {
  const t = now === undefined ? Number.NaN : now - Date.parse(startedAt);
  clockReading.value = Number.isFinite(t) && t >= 0 ? { t, pageTime: readAtMs } : undefined;
}

/** Uses the time of a new record, which is more exact than the wall clock; ignores old records. */
export function noteRecord(t: number, readAtMs = performance.now()): void {
  const estimatedTime = programTime(readAtMs);
  if (estimatedTime === undefined || t > estimatedTime - sameMs) clockReading.value = { t, pageTime: readAtMs };
}

/** Current `t` of the program; `undefined` while unknown. */
export function programTime(nowMs = performance.now()): number | undefined {
  const lastReading = clockReading.peek();
  return lastReading === undefined ? undefined : lastReading.t + (nowMs - lastReading.pageTime);
}
