import { signal } from '@preact/signals';

/** Two readings of the same clock differ by less. */
const toleranceMs = 1_000;

/** `t` is the program's time at the page's time (`performance.now()`). */
interface ClockReading {
  readonly t: number;
  readonly pageTime: number;
}

const clockReading = signal<ClockReading | undefined>(undefined);

/**
 * @param startedAt wall clock at `t` = 0
 * @param nowMs wall clock of the program's host; `undefined` if unknown
 */
export function setProgramClock(startedAt: string, nowMs: number | undefined, readAtMs = performance.now()): void {
  const t = nowMs === undefined ? Number.NaN : nowMs - Date.parse(startedAt);
  clockReading.value = Number.isFinite(t) && t >= 0 ? { t, pageTime: readAtMs } : undefined;
}

/** The time of a new record is more exact than the wall clock. */
export function updateClock(t: number, readAtMs = performance.now()): void {
  const estimatedTime = programTime(readAtMs);
  if (estimatedTime === undefined || t > estimatedTime - toleranceMs) clockReading.value = { t, pageTime: readAtMs };
}

export function programTime(nowMs = performance.now()): number | undefined {
  const lastReading = clockReading.peek();
  return lastReading === undefined ? undefined : lastReading.t + (nowMs - lastReading.pageTime);
}
