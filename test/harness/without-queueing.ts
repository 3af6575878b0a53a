/**
 * What something takes on a clock, less the time in which a thread that has its part in it could have run and had no processor,
 * because others of the machine had them all. What really waits, for a turn, a lock or a timer, is in it as before.
 */
import { readFileSync } from 'node:fs';

/** Milliseconds since its start in which the main thread of a process was ready to run, and did not. */
export function queuedMs(pid: number): number {
  try {
    // Nanoseconds on a processor, nanoseconds in the queue for one, turns.
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6;
  } catch {
    // It has ended, or its kernel does not count.
    return 0;
  }
}

/** What is counted of a process is gone with it: it is looked at meanwhile. */
const lookEveryMs = 20;

/**
 * @param pids of whoever works on it: this process, and the ones that it asks, also where they end with the work. The time of one
 *   thread at a time is in it
 */
export async function msWithoutQueueing(pids: readonly number[], work: () => Promise<unknown>): Promise<number> {
  const before = pids.map(queuedMs);
  const last = [...before];
  const look = (): void => {
    for (const [i, pid] of pids.entries()) last[i] = Math.max(last[i]!, queuedMs(pid));
  };
  const looking = setInterval(look, lookEveryMs);
  const begun = performance.now();
  try {
    await work();
    const took = performance.now() - begun;
    look();
    return Math.max(0, took - last.reduce((sum, queued, i) => sum + queued - before[i]!, 0));
  } finally {
    clearInterval(looking);
  }
}
