/** Measures the CPU time of this thread per iteration of its event loop. */
import { performance } from 'node:perf_hooks';

/** Before Node 23.9, the value includes other threads (garbage collection, signing). */
const threadCpu = process.threadCpuUsage?.bind(process) ?? process.cpuUsage.bind(process);

export class LoadMeter {
  #cpuMs = cpuMs();
  #lastLoopCount = countLoops();

  /** Average milliseconds per iteration since the last call. */
  meanTurnMs(): number {
    const [cpu, count] = [cpuMs(), countLoops()];
    const ms = (cpu - this.#cpuMs) / Math.max(1, count - this.#lastLoopCount);
    this.#cpuMs = cpu;
    this.#lastLoopCount = count;
    return ms;
  }
}

function cpuMs(): number {
  const { user, system } = threadCpu();
  return (user + system) / 1_000;
}

function countLoops(): number {
  return performance.nodeTiming.uvMetricsInfo.loopCount;
}
