/**
 * Tells whether the kernel killed a process because memory ran out (spec/envoy-hot-restart.md §4 "OOM"): the process itself
 * is killed without a word, but the control group's counter grows before the signal is sent. An Envoy is in its agent's
 * group unless somebody moved it.
 */
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

/** The number of out-of-memory kills in a control group so far; undefined where the kernel does not tell. */
export type OutOfMemoryCounter = () => number | undefined;

/**
 * Finds the counter of this process's control group: version 1 where it has the memory controller, else version 2.
 *
 * @param root what stands for `/`: tests have files of their own
 */
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
  /** What of the file system is mounted. */
  readonly part: string;
  readonly at: string;
  readonly type: string;
  /** Mount options of the file system: for version 1 of control groups its controllers. */
  readonly options: readonly string[];
}

/** `36 35 98:0 /part /at rw,noatime shared:1 - cgroup cgroup rw,memory` (man 5 proc_pid_mountinfo). */
function parseMount(line: string): Mount[] {
  const [before, after] = line.split(' - ');
  const [, , , part, at] = before!.split(' ');
  const [type, , options] = after?.split(' ') ?? [];
  if (part === undefined || at === undefined || type === undefined) return [];
  return [{ part, at, type, options: options?.split(',') ?? [] }];
}

/** A container often sees only its own part of the tree, and names its group from the tree's root nevertheless. */
function placeIn({ part, at }: Mount, path: string): string {
  const below = posix.relative(part, path);
  return below.startsWith('..') ? at : posix.join(at, below);
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
