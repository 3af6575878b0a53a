/** After so many failures the delay grows no more: a counter of failures has this bound. */
export const mostFailures = 6;

/** Until the next attempt, after `failures` in a row: 1 s, 2 s, 4 s …, half a minute at the most. */
export function retryDelayMs(failures: number): number {
  return Math.min(1_000 * 2 ** Math.max(0, failures - 1), 30_000);
}

/** One more failure. */
export function failedOnceMore(failures: number): number {
  return Math.min(failures + 1, mostFailures);
}
