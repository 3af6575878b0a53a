/** A process that the kernel killed reports nothing, but the counter of its control group increases before the signal is sent. */
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

/** `undefined` if the kernel does not count OOM kills. */
export type OutOfMemoryCounter = () => number | undefined;

/** Uses control groups of version 1 if they have the memory controller, otherwise version 2. */
export function outOfMemoryCounter(root = '/'): OutOfMemoryCounter {
  const file = counterFile(root);
  if (file === undefined) return () => undefined;
  return () => {
    const [, count] = /^oom_kill (\d+)$/m.exec(textOf(file)) ?? [];
    return count === undefined ? undefined : Number(count);
  };
}

function counterFile(root: string): string | undefined {
  const mounts = textOf(join(root, 'proc/self/mountinfo')).split('\n').flatMap(parseMount);
  for (const line of textOf(join(root, 'proc/self/cgroup')).split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (path === undefined || !controllers!.split(',').includes('memory')) continue;
    const mount = mounts.find(({ type, options }) => type === 'cgroup' && options.includes('memory'));
    if (mount !== undefined) return join(root, placeIn(mount, path), 'memory.oom_control');
  }
  const [, path] = /^0::(\/.*)$/m.exec(textOf(join(root, 'proc/self/cgroup'))) ?? [];
  const mount = mounts.find(({ type }) => type === 'cgroup2');
  return path === undefined || mount === undefined ? undefined : join(root, placeIn(mount, path), 'memory.events');
}

interface Mount {
  readonly subtree: string;
  readonly mountPoint: string;
  readonly type: string;
  /** For control groups of version 1, the options contain the controllers. */
  readonly options: readonly string[];
}

/** Parses `36 35 98:0 /part /at rw,noatime shared:1 - cgroup cgroup rw,memory` (man 5 proc_pid_mountinfo). */
function parseMount(line: string): Mount[] {
  const [fields, typeFields] = line.split(' - ');
  const [, , , subtree, mountPoint] = fields!.split(' ');
  const [type, , options] = typeFields?.split(' ') ?? [];
  if (subtree === undefined || mountPoint === undefined || type === undefined) return [];
  return [{ subtree, mountPoint, type, options: options?.split(',') ?? [] }];
}

/** A container may see only a subtree, but /proc/self/cgroup names its group from the root of the tree. */
function placeIn({ subtree, mountPoint }: Mount, path: string): string {
  const relativePath = posix.relative(subtree, path);
  return relativePath.startsWith('..') ? mountPoint : posix.join(mountPoint, relativePath);
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
