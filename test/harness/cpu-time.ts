/** Processor time of this process that something takes which does not wait: a busy machine makes it no longer. */
export function cpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** Milliseconds that this thread has had a processor so far: what other threads of the process do, and who waits for it, is not in it. */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** The same for something that does not wait. */
export function threadCpuMsOf(work: () => unknown): number {
  const before = threadCpuMs();
  work();
  return threadCpuMs() - before;
}
