import { loggedLine } from './logged-line.ts';

/** Words of what takes too long, each of which is followed by another try. */
const slow = new RegExp(
  [
    loggedLine('kubernetes.stillUnresponsive').source,
    loggedLine('leader.lost', { reason: /no renewal was taken in time/ }).source,
    'will retry.*within \\d+ ms',
  ].join('|'),
);
/** What is tried once more does well then; what never does is a mistake, however it is told. */
const mostTries = 3;

/**
 * Those of a control plane's warnings and errors that a busy machine alone does not lead to: an API server without processor time is told of
 * as one that does not answer, what was asked of it is tried again, and a replica without any may lose its Lease. Each of these is a mistake
 * where it comes again and again.
 */
export function mistakesIn(troubles: readonly string[]): string[] {
  const times = new Map<string, number>();
  for (const line of troubles) times.set(whatOf(line), (times.get(whatOf(line)) ?? 0) + 1);
  return troubles.filter((line) => !slow.test(line) || times.get(whatOf(line))! > mostTries);
}

/** Without the moment and what is counted. */
const whatOf = (line: string): string => line.replaceAll(/\d+/g, '0');
