/**
 * Time without that in which a busy machine let neither the server nor this process run though they could have: a judge by
 * it does not take a machine that is busy with something else for a server that is late.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** How long what was read last is good for. */
const rereadMs = 50;
/** However busy the machine is, so much of its time counts: what never comes is late in the end. */
const leastShare = 0.1;

/**
 * @param pid of the server
 * @returns milliseconds that go on as those of the host's clock do, less what threads of both waited for a processor
 */
export function timeOfTurns(pid: number): () => number {
  let read = { atMs: performance.now(), waitedMs: waited(pid) + waited('self') };
  let time = 0;
  return () => {
    const atMs = performance.now();
    const passedMs = atMs - read.atMs;
    if (passedMs < rereadMs) return time;
    const waitedMs = waited(pid) + waited('self');
    // What one thread has done the next one waits for: their times of waiting follow each other.
    time += Math.max(passedMs * leastShare, passedMs - Math.max(0, waitedMs - read.waitedMs));
    read = { atMs, waitedMs };
    return time;
  };
}

/** Milliseconds in which threads of a process could have run and did not have a processor; 0 where the kernel does not tell. */
function waited(pid: number | 'self'): number {
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
