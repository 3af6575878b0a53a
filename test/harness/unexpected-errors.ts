import { loggedLine } from './logged-line.ts';

/** Messages about slow operations, each of which is retried. */
const slowPattern = new RegExp(
  [
    loggedLine('kubernetes.stillUnresponsive').source,
    loggedLine('leader.lost', { reason: /no renewal was taken in time/ }).source,
    'will retry.*(within \\d+ ms|\\[API_CONNECTION_CLOSED\\])',
  ].join('|'),
);
/** A retried task succeeds within this number of attempts; one that never succeeds is an error, whatever is logged. */
const maxAttempts = 3;

/**
 * Returns a control plane's warnings and errors, except those that a busy machine causes: a slow API server is reported as unresponsive, requests to
 * it that time out or whose connection it closes are retried, and a slow replica may lose its Lease. Each of these is an error if it repeats.
 */
export function unexpectedErrorsIn(problemLines: readonly string[]): string[] {
  const times = new Map<string, number>();
  for (const line of problemLines) times.set(normalizeLine(line), (times.get(normalizeLine(line)) ?? 0) + 1);
  return problemLines.filter((line) => !slowPattern.test(line) || times.get(normalizeLine(line))! > maxAttempts);
}

/** The line without its time and counts. */
const normalizeLine = (line: string): string => line.replaceAll(/\d+/g, '0');
