/** Runs a program with a container's memory limit, and the heap size that bin/heap-limit.sh derives from it. */
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import type { Command } from '../harness/program-files.ts';

/** For cgroup v1 and v2: the groups' parent, the limit's file, and the file that applies the limit to swap. */
const mounts = [
  { mount: '/sys/fs/cgroup/memory', file: 'memory.limit_in_bytes' },
  { mount: '/sys/fs/cgroup', file: 'memory.max' },
];

/**
 * Limits memory. Call it at the top level of a file. If this user may create a group, the kernel kills a process that exceeds the limit; otherwise
 * only the heap is limited, and the test checks {@link peakBytesOf}.
 */
export function limitedTo(bytes: number): (command: Command) => Command {
  const group = makeGroup(bytes);
  afterAll(() => {
    // The processes have exited; the kernel may need a moment to notice.
    if (group !== undefined) rmdirSync(group, { maxRetries: 20, retryDelay: 100 } as never);
  });
  const script = [
    'if [ "$1" ]; then echo $$ >"$1/cgroup.procs"; fi',
    `. "${packageRoot()}/bin/heap-limit.sh"`,
    `CHARTPILOT_MEMORY_LIMIT_BYTES=${bytes} heap_limit /proc/self/cgroup /sys/fs/cgroup /proc/meminfo`,
    'shift',
    // The wrapper derives the heap size from the limit.
    'case $1 in */node) node=$1; shift; exec "$node" --max-semi-space-size=16 $heap "$@" ;; *) exec "$@" ;; esac',
  ].join('\n');
  return ({ executable, args }) => ({
    executable: '/bin/sh',
    args: ['-euc', script, 'sh', group ?? '', executable, ...args],
  });
}

function makeGroup(bytes: number): string | undefined {
  for (const { mount, file } of mounts) {
    const group = join(mount, `chartpilot-test-${process.pid}`);
    try {
      mkdirSync(group);
    } catch {
      continue;
    }
    try {
      readFileSync(join(group, 'cgroup.procs'));
      writeFileSync(join(group, file), `${bytes}`);
      return group;
    } catch {
      // The folder is not a cgroup, or its controller is not enabled.
      rmdirSync(group);
    }
  }
  return undefined;
}

/** The peak resident memory of the process. */
export function peakBytesOf(pid: number): number {
  const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes) * 1024;
}
