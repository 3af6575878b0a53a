/**
 * Which process has the right to base ids: the kernel knows who holds their sockets, also where no file could be written. Asked by an agent
 * that comes after one that was killed: a newer one that was started beside it may have been quicker.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Children of one process, by their parents in /proc. */
function childrenOf(parent: number): number[] {
  return namesIn('/proc').flatMap((name) => {
    const pid = Number(name);
    return Number.isInteger(pid) && parentOf(pid) === parent ? [pid] : [];
  });
}

/** Undefined: it has ended. */
export function parentOf(pid: number): number | undefined {
  try {
    const parent = Number(/^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
    return Number.isInteger(parent) ? parent : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Whether another process that the same one has started holds one of these base ids.
 *
 * @param baseIds undefined: any at all
 */
export function areHeldBySibling(baseIds: readonly number[] | undefined): boolean {
  const held = inodesOf(baseIds);
  if (held.size === 0) return false;
  const siblings = childrenOf(process.ppid).filter((pid) => pid !== process.pid);
  return siblings.some((pid) => socketsOf(pid).some((inode) => held.has(inode)));
}

/** A line of /proc/net/unix ends with the inode and the name, which begins with `@` where it is abstract. */
function inodesOf(baseIds: readonly number[] | undefined): ReadonlySet<string> {
  const lines = readFileSync('/proc/net/unix', 'utf8').matchAll(/ (\d+) @chartpilot_base_id_(\d+)@*$/gm);
  return new Set([...lines].flatMap(([, inode = '', id]) => (baseIds?.includes(Number(id)) === false ? [] : [inode])));
}

function socketsOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  return namesIn(folder).flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`${folder}/${fd}`))?.[1] ?? [];
    } catch {
      return [];
    }
  });
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
