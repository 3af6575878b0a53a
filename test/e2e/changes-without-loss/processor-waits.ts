/** Measures how long processes wait for a processor: the kernel's figures show whether the machine was overloaded. */
import { readdirSync, readFileSync } from 'node:fs';
import type { LoadReport } from '../../load/report.ts';

const sampleEveryMs = 500;

/** Nanoseconds spent in the run queue, by thread. */
function queuedByThread(pid: number): Map<string, number> {
  const queued = new Map<string, number>();
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const [, nanoseconds] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ');
      queued.set(thread, Number(nanoseconds));
    }
  } catch {
    // The process or the thread has exited.
  }
  return queued;
}

/** If a process waits for this share of a window, client timeouts within it may be due to the machine. */
const overloadedShare = 0.5;

export class ProcessorWaits {
  readonly windowMs: number;
  /** Longest wait of a thread within any window, in milliseconds, by process name. */
  readonly maxWaitMs = new Map<string, number>();
  readonly #pids: Readonly<Record<string, number>>;
  readonly #samplesOfWindow: number;
  readonly #samples = new Map<string, Map<string, number>[]>();
  readonly #timer: NodeJS.Timeout;

  /**
   * @param pids process IDs by name
   * @param windowMs length of a window, such as the timeout of a request
   */
  constructor(pids: Readonly<Record<string, number>>, windowMs: number) {
    this.#pids = pids;
    this.windowMs = windowMs;
    this.#samplesOfWindow = Math.ceil(windowMs / sampleEveryMs);
    this.#timer = setInterval(() => this.#sample(), sampleEveryMs);
    this.#sample();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#sample();
  }

  #sample(): void {
    for (const [name, pid] of Object.entries(this.#pids)) {
      const samples = this.#samples.get(name) ?? [];
      this.#samples.set(name, samples);
      const newest = queuedByThread(pid);
      samples.push(newest);
      if (samples.length > this.#samplesOfWindow + 1) samples.shift();
      const oldest = samples[0]!;
      for (const [thread, queued] of newest) {
        const waitedMs = (queued - (oldest.get(thread) ?? queued)) / 1e6;
        this.maxWaitMs.set(name, Math.max(this.maxWaitMs.get(name) ?? 0, waitedMs));
      }
    }
  }
}

/**
 * Whether the machine's load explains the failures: each is a client timeout, and a process on the request's path waited for a processor for at least
 * half of the timeout. The requests still count as failed.
 */
export function reasonInMachine(
  { byName }: Pick<LoadReport, 'byName'>,
  { maxWaitMs, windowMs }: Pick<ProcessorWaits, 'maxWaitMs' | 'windowMs'>,
): string {
  const reasons = Object.values(byName).flatMap((counts) => Object.keys(counts.reasons));
  const otherReasons = reasons.filter((reason) => !reason.startsWith('REQUEST_TIMEOUT '));
  const waits = [...maxWaitMs].map(([name, ms]) => `${name} ${(ms / 1_000).toFixed(1)} s`).join(', ');
  const facts = `longest waits for a processor within ${windowMs / 1_000} s: ${waits}`;
  if (otherReasons.length > 0)
    return `not explained by the load of the machine: not only timeouts of the client; ${facts}`;
  if (Math.max(0, ...maxWaitMs.values()) < windowMs * overloadedShare)
    return `not explained by the load of the machine: no process waited for half of a timeout; ${facts}`;
  return `the machine is overloaded: only timeouts of the client, while processes waited for a processor; run it on a quiet machine; ${facts}`;
}

/** How long the main thread of a process has waited for a processor since it started, in milliseconds. */
export function waitedForProcessorMs(pid: number): number {
  return (queuedByThread(pid).get(String(pid)) ?? 0) / 1e6;
}
