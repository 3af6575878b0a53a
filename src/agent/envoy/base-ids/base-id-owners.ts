/** The kernel knows the owner of a base ID's socket, even if no file could be written. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

function childrenOf(parent: number): number[] {
  return namesIn('/proc').flatMap((name) => {
    const pid = Number(name);
    return Number.isInteger(pid) && parentOf(pid) === parent ? [pid] : [];
  });
}

export function parentOf(pid: number): number | undefined {
  try {
    const parent = Number(/^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
    return Number.isInteger(parent) ? parent : undefined;
  } catch {
    return undefined;
  }
}

/** The siblings are other children of this agent's parent. */
export function areHeldBySibling(baseIds: readonly number[] | undefined): boolean {
  return haveSibling(inodesOf(/ (\d+) @chartpilot_base_id_(\d+)(?:_in_[0-9a-f]+)?@*$/gm, baseIds));
}

/** Whether a sibling owns or requests the base ID by a name of {@link containerNamesOf}. */
export function isRequestedBySibling(baseId: number): boolean {
  return haveSibling(inodesOf(requestNames, [baseId]));
}

/** Like {@link isRequestedBySibling}, for any process of the network namespace. */
export function isRequestedInNamespace(baseId: number): boolean {
  return inodesOf(requestNames, [baseId]).size > 0;
}

export const socketNameOf = (baseId: number): string => `chartpilot_base_id_${baseId}`;

/** The names are random, so that no other process can take them first. */
export const containerNamesOf = (baseId: number, random: string) => ({
  request: `chartpilot_wants_id_${baseId}_${random}`,
  held: `${socketNameOf(baseId)}_in_${random}`,
});
const requestNames = / (\d+) @chartpilot_wants_id_(\d+)_[0-9a-f]+@*$/gm;

function haveSibling(inodes: ReadonlySet<string>): boolean {
  if (inodes.size === 0) return false;
  const siblings = childrenOf(process.ppid).filter((pid) => pid !== process.pid);
  return siblings.some((pid) => socketsOf(pid).some((inode) => inodes.has(inode)));
}

/** A line of /proc/net/unix ends with the inode and the name; `@` marks an abstract name. */
function inodesOf(names: RegExp, baseIds: readonly number[] | undefined): ReadonlySet<string> {
  const lines = readFileSync('/proc/net/unix', 'utf8').matchAll(names);
  return new Set([...lines].flatMap(([, inode = '', id]) => (baseIds?.includes(Number(id)) === false ? [] : [inode])));
}

/**
 * Reads the first thread that still has descriptors in /proc: the main thread of a killed process may have exited while another thread holds the
 * sockets.
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
