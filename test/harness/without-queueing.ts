/**
 * Measures the wall-clock duration of some work, without the time in which a participating thread waits for a processor because other processes use
 * all of them. Other waits, such as for a lock or a timer, are included.
 */
import { readFileSync } from 'node:fs';

/** Time in milliseconds that a process's main thread has waited for a processor since its start. */
export function queuedMs(pid: number): number {
  try {
    // The fields are nanoseconds on a processor, nanoseconds in the run queue, and the number of time slices.
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6;
  } catch {
    // The process has exited, or its kernel does not count.
    return 0;
  }
}

/** Interval in milliseconds. The counters of a process disappear with it, so they are polled. */
const pollIntervalMs = 20;

/**
 * @param pids processes that do the work: this one, and those that it calls, even if they exit with the work. The time of one thread at a time is
 * included
 */
export async function msWithoutQueueing(pids: readonly number[], work: () => Promise<unknown>): Promise<number> {
  const initial = pids.map(queuedMs);
  const last = [...initial];
  const poll = (): void => {
    for (const [i, pid] of pids.entries()) last[i] = Math.max(last[i]!, queuedMs(pid));
  };
  const polling = setInterval(poll, pollIntervalMs);
  const startedAt = performance.now();
  try {
    await work();
    const took = performance.now() - startedAt;
    poll();
    return Math.max(0, took - last.reduce((sum, queued, i) => sum + queued - initial[i]!, 0));
  } finally {
    clearInterval(polling);
  }
}
