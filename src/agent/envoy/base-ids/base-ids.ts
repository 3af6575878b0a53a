/**
 * Envoy derives the names of its shared memory and sockets from its base ID, so each agent needs its own base ID. The owner of a base ID is the
 * process that holds its abstract socket: names are unique in a network namespace, and the kernel closes the socket when the owner exits. Any process
 * of that namespace can take a free name; base-id-ownership.ts protects an agent's Envoys against such a process.
 */
import { createHash } from 'node:crypto';
import { existsSync, linkSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChartpilotError, isSystemError } from '../../../runtime/errors.ts';
import { readRegularFile } from '../../../runtime/files/regular-file.ts';
import { ensureRunDir } from '../../../runtime/files/run-dir.ts';
import { unwritableError } from '../scratch-folder.ts';
import { isRequestedInNamespace } from './base-id-owners.ts';
import { claimForContainer, claimName, type OwnedSocket } from './base-id-ownership.ts';

export interface BaseIdOptions {
  readonly runDir: string;
  readonly baseId?: number;
  /** Maximum wait for the exit of a killed agent's Envoys. */
  readonly sweepLimitMs?: number;
  readonly sharedMemoryDir?: string;
  /** Maximum wait for base IDs that another agent is about to release. */
  readonly resumeLimitMs?: number;
  /** If another agent keeps these base IDs, waiting for them is useless. */
  readonly isOwnedByOther?: () => boolean;
  /** An unrelated process has the name of the base ID. */
  readonly onForeignName?: (baseId: number) => void;
}

export interface ClaimedBaseId {
  readonly baseId: number;
  readonly sweptFiles: string[];
  /** Called when no Envoy of this agent runs. Idempotent; never throws. */
  release(): void;
  /** Leaves the base ID and its Envoys to another agent. Idempotent; never throws. */
  handOver(): void;
}

interface Owner {
  readonly pid: number;
  /** The start time is field 22 of /proc/PID/stat. */
  readonly startTime: string;
}

const maxLockBytes = 256;
/** Envoy multiplies the base ID by 10 and stores it in 32 bits; agents need far fewer. */
const lastBaseId = 65_535;
const sharedMemoryDirDefault = '/dev/shm';
const sweepPollMs = 25;
const defaultSweepLimitMs = 3_000;

/** @throws ChartpilotError BASE_IDS_EXHAUSTED, or FILE_UNREADABLE if the run directory is unusable */
export async function claimBaseId(options: BaseIdOptions): Promise<ClaimedBaseId> {
  ensureRunDir(options.runDir);
  const sweptFiles = await sweep(options);
  const claim = await claimOneOf(options);
  if (claim === undefined) throw exhaustedError(options);
  return { ...claim, sweptFiles };
}

async function claimOneOf(options: BaseIdOptions): Promise<Omit<ClaimedBaseId, 'sweptFiles'> | undefined> {
  for (const baseId of candidates(options)) {
    const claim = await tryClaim(baseId, options);
    if (claim !== undefined) return { baseId, ...claim };
  }
  return undefined;
}

export interface ClaimedBaseIds extends Pick<ClaimedBaseId, 'sweptFiles' | 'release' | 'handOver'> {
  readonly baseIds: readonly number[];
}

/**
 * The spare base ID is used if the serving Envoy no longer accepts children; a missing one is not an error. With a bootstrap of the user, no second
 * Envoy can run, because such a bootstrap fixes the admin port.
 *
 * @throws ChartpilotError as {@link claimBaseId}
 */
export async function claimBaseIds(options: BaseIdOptions & { readonly withSpare: boolean }): Promise<ClaimedBaseIds> {
  const firstClaim = await claimBaseId(options);
  const { baseId: _, ...optionsWithoutId } = options;
  const spareClaim = options.withSpare ? await claimOneOf(optionsWithoutId).catch(() => undefined) : undefined;
  return {
    baseIds: [firstClaim.baseId, ...(spareClaim === undefined ? [] : [spareClaim.baseId])],
    sweptFiles: firstClaim.sweptFiles,
    release: () => {
      firstClaim.release();
      spareClaim?.release();
    },
    handOver: () => {
      firstClaim.handOver();
      spareClaim?.handOver();
    },
  };
}

/** Maximum wait for another agent that holds an ID only while it checks the lock of a killed agent. */
const defaultResumeLimitMs = 5_000;

/** Takes the base IDs of a killed agent with the Envoys that use them; `undefined`, with no ID taken, if another agent owns one. */
export async function resumeBaseIds(
  {
    runDir,
    sharedMemoryDir = sharedMemoryDirDefault,
    resumeLimitMs = defaultResumeLimitMs,
    isOwnedByOther = () => false,
    onForeignName = () => {},
  }: BaseIdOptions,
  baseIds: readonly number[],
): Promise<ClaimedBaseIds | undefined> {
  const deadline = performance.now() + resumeLimitMs;
  const ownedSockets: OwnedSocket[] = [];
  for (const baseId of baseIds) {
    const shouldStopWaiting = (): boolean => performance.now() > deadline || isOwnedByOther();
    const ownedSocket = await claimForContainer(baseId, { isOver: shouldStopWaiting, onForeignName });
    if (ownedSocket === undefined) {
      for (const ownedId of ownedSockets) ownedId.close();
      return undefined;
    }
    ownedSockets.push(ownedSocket);
  }
  const locks = baseIds.map((baseId) => lockFile(runDir, baseId));
  for (const lock of locks) replaceLock(lock);
  let isReleased = false;
  return {
    baseIds,
    sweptFiles: [],
    release: () => {
      if (isReleased) return;
      isReleased = true;
      for (const baseId of baseIds) removeQuietly(sharedMemoryFile(sharedMemoryDir, baseId));
      for (const lock of locks) removeQuietly(lock);
      for (const hold of ownedSockets) hold.close();
    },
    handOver: () => {
      if (isReleased) return;
      isReleased = true;
      for (const hold of ownedSockets) hold.close();
    },
  };
}

/** Starts at an offset that differs between agents, so that agents that start together rarely compete. */
function* candidates({ runDir, baseId }: BaseIdOptions): Generator<number> {
  if (baseId !== undefined) {
    yield baseId;
    return;
  }
  const hash = createHash('sha256').update(`${runDir} ${process.pid}`).digest().readUInt32BE();
  for (let step = 0; step < lastBaseId; step++) yield 1 + ((hash + step) % lastBaseId);
}

async function tryClaim(
  baseId: number,
  options: BaseIdOptions,
): Promise<Pick<ClaimedBaseId, 'release' | 'handOver'> | undefined> {
  const { runDir, baseId: requested, sharedMemoryDir = sharedMemoryDirDefault } = options;
  const ownedSocket = await claimName(baseId);
  if (ownedSocket === undefined) return undefined;
  const lock = lockFile(runDir, baseId);
  const memoryFile = sharedMemoryFile(sharedMemoryDir, baseId);
  // Shared memory without a socket belongs to another Envoy. For a requested base ID, epoch 0 recreates it.
  const isForeign = requested === undefined && existsSync(memoryFile);
  if (isForeign || isRequestedInNamespace(baseId) || isUsedByEnvoy(baseId) || !writeLock(lock)) {
    ownedSocket.close();
    return undefined;
  }
  let isReleased = false;
  return {
    release: () => {
      if (isReleased) return;
      isReleased = true;
      removeQuietly(memoryFile);
      removeQuietly(lock);
      ownedSocket.close();
    },
    handOver: () => {
      if (isReleased) return;
      isReleased = true;
      ownedSocket.close();
    },
  };
}

function removeQuietly(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // The folder may be read-only.
  }
}

/** Waits until the Envoys of killed agents have exited. */
async function sweep({
  runDir,
  sweepLimitMs = defaultSweepLimitMs,
  sharedMemoryDir = sharedMemoryDirDefault,
}: BaseIdOptions) {
  const removedFiles = await Promise.all(
    lockedBaseIds(runDir).map(async (baseId) => {
      const lock = lockFile(runDir, baseId);
      // Wait without holding the name: an agent that adopts these Envoys needs it.
      if (isAlive(readOwner(lock)) || !(await waitUntilFree(baseId, sweepLimitMs))) return [];
      const ownedSocket = await claimName(baseId);
      if (ownedSocket === undefined) return [];
      try {
        // Check again: another agent could have taken the ID before this one held the socket.
        if (isAlive(readOwner(lock)) || isUsedByEnvoy(baseId)) return [];
        const files = [sharedMemoryFile(sharedMemoryDir, baseId), lock].filter((file) => existsSync(file));
        for (const file of files) removeQuietly(file);
        return files.filter((file) => !existsSync(file));
      } finally {
        ownedSocket.close();
      }
    }),
  );
  return removedFiles.flat();
}

export async function areBaseIdsFree(baseIds: readonly number[], limitMs = defaultSweepLimitMs): Promise<boolean> {
  const freeStates = await Promise.all(baseIds.map((baseId) => waitUntilFree(baseId, limitMs)));
  return freeStates.every((isFree) => isFree);
}

async function waitUntilFree(baseId: number, limitMs: number): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  while (isUsedByEnvoy(baseId)) {
    if (performance.now() > deadline) return false;
    await sleep(sweepPollMs);
  }
  return true;
}

/** The names of Envoy's abstract sockets contain the base ID. */
function isUsedByEnvoy(baseId: number): boolean {
  const names = [0, 1, 2].map((offset) => 10 * baseId + offset).join('|');
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

/** Writes a temporary file and links it, so that the lock is always complete. */
function writeLock(lock: string): boolean {
  const temporaryFile = `${lock}.${process.pid}`;
  const owner: Owner = { pid: process.pid, startTime: startTimeOf(process.pid) ?? '' };
  try {
    // In a configured run directory, other users may have created a link with this name: remove it, never follow it.
    removeQuietly(temporaryFile);
    writeFileSync(temporaryFile, JSON.stringify(owner), { flag: 'wx' });
    return tryLink(temporaryFile, lock);
  } catch (error) {
    throw unwritableError(dirname(lock), error, '--runDir');
  } finally {
    removeQuietly(temporaryFile);
  }
}

function tryLink(temporaryFile: string, lock: string): boolean {
  try {
    linkSync(temporaryFile, lock);
    return true;
  } catch (error) {
    if (isSystemError(error, 'EEXIST')) return false;
    throw error;
  }
}

/** Replaces the lock of a killed agent. Ownership depends on the socket only, so a full disk does not prevent it. */
function replaceLock(lock: string): void {
  removeQuietly(lock);
  try {
    writeLock(lock);
  } catch {
    // If this agent is killed, the next agent reads the record instead.
  }
}

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

/** Flag PF_EXITING in field 9 of /proc/PID/stat: the process is exiting. */
const exitingFlag = 0x4;

/** Start time of a process, which distinguishes it from others with the same PID. `undefined` if it has exited or is a zombie. */
export function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // Field 2, the name, may contain spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // A large Envoy needs many milliseconds from PF_EXITING until it is a zombie.
    return (Number(fields[6]) & exitingFlag) !== 0 ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

function exhaustedError({ runDir, baseId }: BaseIdOptions): ChartpilotError {
  if (baseId === undefined)
    return new ChartpilotError('BASE_IDS_EXHAUSTED', `all base IDs from 1 to ${lastBaseId} are in use`);
  const owner = readOwner(lockFile(runDir, baseId));
  const ownerText = owner === undefined ? 'another process' : `process ${owner.pid}`;
  return new ChartpilotError('BASE_IDS_EXHAUSTED', `base ID ${baseId} is in use by ${ownerText}`, {
    hint: 'Stop that process, or omit --baseId: the agent then uses a free base ID.',
    fields: { path: '--baseId', got: String(baseId) },
  });
}
