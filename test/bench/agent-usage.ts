/** An agent's resource usage, as the kernel reports it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

export interface AgentUsage {
  /** The agent's resident memory without its children. */
  readonly rssBytes: number;
  readonly fds: number;
  /** Files in /dev/shm with the base IDs of its Envoys. */
  readonly sharedMemoryFiles: number;
}

const settlingMs = 100;
const maxReadings = 20;

/** Reads until the number of file descriptors is the same twice: those of an Envoy that just exited may still be open. */
export async function settledUsage(pid: number, baseIds: ReadonlySet<number>): Promise<AgentUsage> {
  let usage = readUsage(pid, baseIds);
  for (let reading = 1; reading < maxReadings; reading++) {
    const previous = usage;
    await sleep(settlingMs);
    usage = readUsage(pid, baseIds);
    if (usage.fds === previous.fds) break;
  }
  return usage;
}

function readUsage(pid: number, baseIds: ReadonlySet<number>): AgentUsage {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const rssKib = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
  const fds = readdirSync(`/proc/${pid}/fd`).length;
  const sharedMemoryFiles = [...baseIds].filter((baseId) => existsSync(sharedMemoryFile(baseId))).length;
  return { rssBytes: rssKib * 1024, fds, sharedMemoryFiles };
}

/** Shared memory of all epochs of a base ID. Envoy multiplies the base ID by ten (docs/hot-restart-reference.md, fact 2). */
export function sharedMemoryFile(baseId: number): string {
  return `/dev/shm/envoy_shared_memory_${baseId * 10}`;
}
