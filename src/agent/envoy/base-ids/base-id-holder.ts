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
  return haveSibling(inodesOf(/ (\d+) @chartpilot_base_id_(\d+)(?:_in_[0-9a-f]+)?@*$/gm, baseIds));
}

/** Whether such a process has the right to this base id, or asks for it, in this container alone: by {@link inContainer}. */
export function isWantedBySibling(baseId: number): boolean {
  return haveSibling(inodesOf(wantedNames, [baseId]));
}

/** Likewise, but any process of the network namespace at all. */
export function isWantedInContainer(baseId: number): boolean {
  return inodesOf(wantedNames, [baseId]).size > 0;
}

/** The name of the right to a base id, in a network namespace. */
export const nameOfId = (baseId: number): string => `chartpilot_base_id_${baseId}`;

/** Names of the same right among the agents of one container. Nobody knows them before they are taken. */
export const inContainer = (baseId: number, random: string) => ({
  wanted: `chartpilot_wants_id_${baseId}_${random}`,
  held: `${nameOfId(baseId)}_in_${random}`,
});
const wantedNames = / (\d+) @chartpilot_wants_id_(\d+)_[0-9a-f]+@*$/gm;

function haveSibling(inodes: ReadonlySet<string>): boolean {
  if (inodes.size === 0) return false;
  const siblings = childrenOf(process.ppid).filter((pid) => pid !== process.pid);
  return siblings.some((pid) => socketsOf(pid).some((inode) => inodes.has(inode)));
}

/** A line of /proc/net/unix ends with the inode and the name, which begins with `@` where it is abstract. */
function inodesOf(names: RegExp, baseIds: readonly number[] | undefined): ReadonlySet<string> {
  const lines = readFileSync('/proc/net/unix', 'utf8').matchAll(names);
  return new Set([...lines].flatMap(([, inode = '', id]) => (baseIds?.includes(Number(id)) === false ? [] : [inode])));
}

/**
 * Inodes of the sockets of a process. Its threads share them: the first thread of a killed process may have ended, and has no
 * descriptors in /proc then, while another thread still holds them.
 */
function socketsOf(pid: number): string[] {
  for (const thread of namesIn(`/proc/${pid}/task`)) {
    const folder = `/proc/${pid}/task/${thread}/fd`;
    const descriptors = namesIn(folder);
    if (descriptors.length > 0) return descriptors.flatMap((fd) => socketAt(`${folder}/${fd}`));
  }
  return [];
}

function socketAt(descriptor: string): string[] {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(descriptor))?.slice(1) ?? [];
  } catch {
    return [];
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
