/**
 * A clock that excludes the time in which neither the server nor this process got a CPU although it was runnable. Limits based on it do not blame the
 * server for the load of other processes.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** Maximum age of a reading. */
const rereadMs = 50;
/** Minimum speed relative to the real clock, however busy the machine is: a missing event becomes late eventually. */
const minShare = 0.1;

/**
 * @param pid PID of the server; a restart changes it
 * @returns milliseconds of the host's clock, less the time that threads of both processes waited for a CPU
 */
export function scheduledTime(pid: () => number): () => number {
  let read = { atMs: performance.now(), waitedMs: waitingMs(pid()) + waitingMs('self') };
  let time = 0;
  return () => {
    const atMs = performance.now();
    const passedMs = atMs - read.atMs;
    if (passedMs < rereadMs) return time;
    const waitedMs = waitingMs(pid()) + waitingMs('self');
    // The next thread often waits for the result of the previous one, so their waiting times add up.
    time += Math.max(passedMs * minShare, passedMs - Math.max(0, waitedMs - read.waitedMs));
    read = { atMs, waitedMs };
    return time;
  };
}

/** Milliseconds in which threads of a process were runnable without a CPU; 0 if the kernel does not report it. */
function waitingMs(pid: number | 'self'): number {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    return threads.reduce((sum, thread) => sum + waitedOf(`/proc/${pid}/task/${thread}/schedstat`), 0);
  } catch {
    return 0;
  }
}

function waitedOf(schedstat: string): number {
  return Number(readFileSync(schedstat, 'utf8').split(' ')[1]) / 1e6;
}
