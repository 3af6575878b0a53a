/** Processor time of synchronous work in this process, which a busy machine does not lengthen. */
export function cpuMs(work: () => void): number {
  const initial = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(initial);
  return (user + system) / 1_000;
}

/** Processor time of this thread so far in milliseconds, without other threads of the process and without waiting. */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** Processor time of synchronous work in this thread. */
export function threadCpuMsOf(work: () => unknown): number {
  const initial = threadCpuMs();
  work();
  return threadCpuMs() - initial;
}
