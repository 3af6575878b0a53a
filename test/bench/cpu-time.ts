import { readdirSync, readFileSync } from 'node:fs';

/** CPU time that the threads of a process have used, without its children, in milliseconds. */
export function cpuTimeMs(pid: number): number {
  const threads = `/proc/${pid}/task`;
  // schedstat counts nanoseconds, stat counts steps of 10 ms.
  const times = readdirSync(threads).map((thread) =>
    Number(readFileSync(`${threads}/${thread}/schedstat`, 'utf8').split(' ')[0]),
  );
  return times.reduce((sum, time) => sum + time, 0) / 1e6;
}
