/** Upper bound of failure counters, at which the delay no longer grows. */
export const maxCountedFailures = 6;

export function retryDelayMs(failures: number): number {
  return Math.min(1_000 * 2 ** Math.max(0, failures - 1), 30_000);
}

export function incrementFailures(failures: number): number {
  return Math.min(failures + 1, maxCountedFailures);
}
