/**
 * Envoy base ids of this host. An Envoy names its shared memory and its sockets after its base id, so each agent needs
 * one of its own, and what a dead agent left behind must go (spec/envoy-hot-restart.md §1 "Left-overs").
 *
 * A base id belongs to whoever holds the abstract socket of that id: the kernel gives it up when its owner dies, and no
 * two processes of a network namespace (where Envoy's own sockets live) can hold it. The lock file beside it says, after
 * a death, that the shared memory was ours.
 *
 * Any process of that namespace can take the name in the moment in which it is free, and would end what runs under the id if that
 * counted: against such a stranger the agents of one container settle it among themselves (base-id-right.ts).
 */
import { createHash } from 'node:crypto';
import { existsSync, linkSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChartpilotError, isSystemError } from '../../../runtime/errors.ts';
import { readRegularFile } from '../../../runtime/files/regular-file.ts';
import { ensureRunDir } from '../../../runtime/files/run-dir.ts';
import { unwritable } from '../scratch-folder.ts';
import { isWantedInContainer } from './base-id-holder.ts';
import { holdName, holdOneWay, type Right } from './base-id-right.ts';

export interface BaseIdOptions {
  /** Directory of the lock files. */
  readonly runDir: string;
  /** The id that is wanted, and no other; absent: any. */
  readonly baseId?: number;
  /** How long to wait for the Envoys of a dead agent to end. */
  readonly sweepLimitMs?: number;
  readonly sharedMemoryDir?: string;
  /** How long to wait for ids that another agent is about to leave. */
  readonly resumeLimitMs?: number;
  /** Another agent has taken such ids for good: they are not waited for. */
  readonly isAnothers?: () => boolean;
  /** A stranger has the name of such an id: it is gone on with without. */
  readonly onStranger?: (baseId: number) => void;
}

export interface ClaimedBaseId {
  readonly baseId: number;
  /** Files of dead agents that were removed. */
  readonly sweptFiles: string[];
  /**
   * Removes the lock and the shared memory, as far as that can be done. For the time when no Envoy of ours lives. Safe to call
   * twice; never throws.
   */
  release(): void;
  /** For another agent to take, with the Envoys that live under it: nothing is removed. Safe to call twice; never throws. */
  letGo(): void;
}

interface Owner {
  readonly pid: number;
  /** Field 22 of /proc/pid/stat: tells a process from a later one with the same number. */
  readonly startTime: string;
}

/** A lock has two numbers. */
const maxLockBytes = 256;
/** Envoy multiplies the id by 10 and keeps it in 32 bits; far fewer are ever needed. */
const lastBaseId = 65_535;
const sharedMemoryDirDefault = '/dev/shm';
const sweepPollMs = 25;
const usualSweepLimitMs = 3_000;

/**
 * Sweeps what dead agents left behind, then takes a base id that nobody on this host uses.
 *
 * @throws ChartpilotError BASE_IDS_EXHAUSTED when none is free, or the wanted one is not; FILE_UNREADABLE when the run
 *   directory cannot be used
 */
export async function claimBaseId(options: BaseIdOptions): Promise<ClaimedBaseId> {
  ensureRunDir(options.runDir);
  const sweptFiles = await sweep(options);
  const claim = await claimOneOf(options);
  if (claim === undefined) throw exhausted(options);
  return { ...claim, sweptFiles };
}

async function claimOneOf(options: BaseIdOptions): Promise<Omit<ClaimedBaseId, 'sweptFiles'> | undefined> {
  for (const baseId of candidates(options)) {
    const claim = await tryClaim(baseId, options);
    if (claim !== undefined) return { baseId, ...claim };
  }
  return undefined;
}

/** The base ids of one agent: they are claimed, released and swept as one. */
export interface ClaimedBaseIds extends Pick<ClaimedBaseId, 'sweptFiles' | 'release' | 'letGo'> {
  /** The one that Envoys begin with, then the spare one, where there is one. */
  readonly baseIds: readonly number[];
}

/**
 * Takes the base id that Envoys begin with and, `withSpare`, another free one to fall back to when an Envoy takes no child
 * any more: the next one comes up beside it.
 *
 * A bootstrap of the user's own leaves no room for a second: it names the admin port and the listeners, and two Envoys
 * that share nothing cannot both have that port.
 *
 * @throws ChartpilotError as {@link claimBaseId}; a spare id that is not to be had is done without
 */
export async function claimBaseIds(options: BaseIdOptions & { readonly withSpare: boolean }): Promise<ClaimedBaseIds> {
  const first = await claimBaseId(options);
  const { baseId: _, ...anyFree } = options;
  const spare = options.withSpare ? await claimOneOf(anyFree).catch(() => undefined) : undefined;
  return {
    baseIds: [first.baseId, ...(spare === undefined ? [] : [spare.baseId])],
    sweptFiles: first.sweptFiles,
    release: () => {
      first.release();
      spare?.release();
    },
    letGo: () => {
      first.letGo();
      spare?.letGo();
    },
  };
}

/** How long ids are waited for that somebody else holds who is looking at the lock of a dead agent. */
const usualResumeLimitMs = 5_000;

/**
 * Takes the base ids of an agent that was killed, with what runs under them. Undefined when another agent has one of them: then nothing was taken.
 */
export async function resumeBaseIds(
  {
    runDir,
    sharedMemoryDir = sharedMemoryDirDefault,
    resumeLimitMs = usualResumeLimitMs,
    isAnothers = () => false,
    onStranger = () => {},
  }: BaseIdOptions,
  baseIds: readonly number[],
): Promise<ClaimedBaseIds | undefined> {
  const deadline = performance.now() + resumeLimitMs;
  const holds: Right[] = [];
  for (const baseId of baseIds) {
    const isOver = (): boolean => performance.now() > deadline || isAnothers();
    const hold = await holdOneWay(baseId, { isOver, onStranger });
    if (hold === undefined) {
      for (const held of holds) held.close();
      return undefined;
    }
    holds.push(hold);
  }
  const locks = baseIds.map((baseId) => lockFile(runDir, baseId));
  for (const lock of locks) takeLock(lock);
  let released = false;
  return {
    baseIds,
    sweptFiles: [],
    release: () => {
      if (released) return;
      released = true;
      for (const baseId of baseIds) removeQuietly(sharedMemoryFile(sharedMemoryDir, baseId));
      for (const lock of locks) removeQuietly(lock);
      for (const hold of holds) hold.close();
    },
    letGo: () => {
      if (released) return;
      released = true;
      for (const hold of holds) hold.close();
    },
  };
}

/** All ids, beginning at a place that differs from agent to agent: those that start together do not meet at each id. */
function* candidates({ runDir, baseId }: BaseIdOptions): Generator<number> {
  if (baseId !== undefined) {
    yield baseId;
    return;
  }
  const hash = createHash('sha256').update(`${runDir} ${process.pid}`).digest().readUInt32BE();
  for (let step = 0; step < lastBaseId; step++) yield 1 + ((hash + step) % lastBaseId);
}

/** @returns undefined when it is somebody else's */
async function tryClaim(
  baseId: number,
  options: BaseIdOptions,
): Promise<Pick<ClaimedBaseId, 'release' | 'letGo'> | undefined> {
  const { runDir, baseId: wanted, sharedMemoryDir = sharedMemoryDirDefault } = options;
  const hold = await holdName(baseId);
  if (hold === undefined) return undefined;
  const lock = lockFile(runDir, baseId);
  const memory = sharedMemoryFile(sharedMemoryDir, baseId);
  // Shared memory without a socket is what somebody else's Envoy left; epoch 0 makes it anew for an id that was asked for.
  const foreign = wanted === undefined && existsSync(memory);
  if (foreign || isWantedInContainer(baseId) || envoyUses(baseId) || !writeLock(lock)) {
    hold.close();
    return undefined;
  }
  let released = false;
  return {
    release: () => {
      if (released) return;
      released = true;
      // The next agent finds that the owner of what cannot be removed now is dead.
      removeQuietly(memory);
      removeQuietly(lock);
      hold.close();
    },
    letGo: () => {
      if (released) return;
      released = true;
      hold.close();
    },
  };
}

function removeQuietly(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // The folder may be read-only by now.
  }
}

/** Removes the lock and the shared memory of every agent that is dead, once its Envoys are gone. */
async function sweep({
  runDir,
  sweepLimitMs = usualSweepLimitMs,
  sharedMemoryDir = sharedMemoryDirDefault,
}: BaseIdOptions) {
  const swept = await Promise.all(
    lockedBaseIds(runDir).map(async (baseId) => {
      const lock = lockFile(runDir, baseId);
      // The name is not held while Envoys end: the agent that goes on with them would not get it.
      if (isAlive(readOwner(lock)) || !(await becomesFree(baseId, sweepLimitMs))) return [];
      const hold = await holdName(baseId);
      if (hold === undefined) return [];
      try {
        // Read again: until we held the socket, another agent could have taken the id.
        if (isAlive(readOwner(lock)) || envoyUses(baseId)) return [];
        const files = [sharedMemoryFile(sharedMemoryDir, baseId), lock].filter((file) => existsSync(file));
        for (const file of files) removeQuietly(file);
        return files.filter((file) => !existsSync(file));
      } finally {
        hold.close();
      }
    }),
  );
  return swept.flat();
}

/** Whether no Envoy lives under them any more, within a limit. */
export async function areFree(baseIds: readonly number[], limitMs = usualSweepLimitMs): Promise<boolean> {
  const free = await Promise.all(baseIds.map((baseId) => becomesFree(baseId, limitMs)));
  return free.every((isFree) => isFree);
}

async function becomesFree(baseId: number, limitMs: number): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  while (envoyUses(baseId)) {
    if (performance.now() > deadline) return false;
    await sleep(sweepPollMs);
  }
  return true;
}

/** Whether an Envoy with this base id lives: each holds abstract sockets named after it. */
function envoyUses(baseId: number): boolean {
  const names = [0, 1, 2].map((turn) => 10 * baseId + turn).join('|');
  return new RegExp(`@envoy_domain_socket_(udp_)?(parent|child)_(udp_)?(${names})(@|\\s|$)`, 'm').test(
    readFileSync('/proc/net/unix', 'utf8'),
  );
}

function sharedMemoryFile(directory: string, baseId: number): string {
  return join(directory, `envoy_shared_memory_${10 * baseId}`);
}

function lockFile(runDir: string, baseId: number): string {
  return join(runDir, `base-id-${baseId}`);
}

function lockedBaseIds(runDir: string): number[] {
  return readdirSync(runDir).flatMap((name) => {
    const number = /^base-id-(\d+)$/.exec(name)?.[1];
    return number === undefined ? [] : [Number(number)];
  });
}

/** Whole from its first moment: written beside, then linked under its name. @returns false when the lock exists */
function writeLock(lock: string): boolean {
  const draft = `${lock}.${process.pid}`;
  const owner: Owner = { pid: process.pid, startTime: startTimeOf(process.pid) ?? '' };
  try {
    // Others may write to a run directory that was named: a link of theirs is removed, never followed.
    removeQuietly(draft);
    writeFileSync(draft, JSON.stringify(owner), { flag: 'wx' });
    return linked(draft, lock);
  } catch (error) {
    throw unwritable(dirname(lock), error, '--runDir');
  } finally {
    removeQuietly(draft);
  }
}

/** @returns false when the lock exists */
function linked(draft: string, lock: string): boolean {
  try {
    linkSync(draft, lock);
    return true;
  } catch (error) {
    if (isSystemError(error, 'EEXIST')) return false;
    throw error;
  }
}

/** Takes a dead owner's lock. The socket is the right to the id: what runs under it is taken over also where the disk is full. */
function takeLock(lock: string): void {
  removeQuietly(lock);
  try {
    writeLock(lock);
  } catch {
    // What this agent leaves, if it is killed, the next one knows by the record.
  }
}

/** Undefined for a lock that is gone or that nobody can have written. */
function readOwner(lock: string): Owner | undefined {
  try {
    const { content } = readRegularFile(lock, { maxBytes: maxLockBytes });
    const owner = JSON.parse(content.toString()) as Partial<Owner>;
    if (typeof owner.pid !== 'number' || typeof owner.startTime !== 'string') return undefined;
    return { pid: owner.pid, startTime: owner.startTime };
  } catch {
    return undefined;
  }
}

function isAlive(owner: Owner | undefined): boolean {
  return owner !== undefined && startTimeOf(owner.pid) === owner.startTime;
}

/** A flag of a process, field 9: it runs nothing of its own any more (PF_EXITING). */
const exiting = 0x4;

/** When a process began, by the kernel: no other process of that number shares it. Undefined: it has ended, be it a zombie still. */
export function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name, field 2, may hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // Before it is a zombie it has no memory and no thread left, for milliseconds that a large Envoy makes many.
    return (Number(fields[6]) & exiting) !== 0 ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

function exhausted({ runDir, baseId }: BaseIdOptions): ChartpilotError {
  if (baseId === undefined)
    return new ChartpilotError('BASE_IDS_EXHAUSTED', `all base IDs from 1 to ${lastBaseId} are in use`);
  const owner = readOwner(lockFile(runDir, baseId));
  const who = owner === undefined ? 'another process' : `process ${owner.pid}`;
  return new ChartpilotError('BASE_IDS_EXHAUSTED', `base ID ${baseId} is in use by ${who}`, {
    hint: 'Stop that process, or omit --baseId: the agent then uses a free base ID.',
    fields: { path: '--baseId', got: String(baseId) },
  });
}
