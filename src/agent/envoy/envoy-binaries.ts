/**
 * Each executable file of Envoy is opened when the agent first uses it (pinned), so that it stays executable after its path is replaced or removed.
 */
import { createHash } from 'node:crypto';
import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { setImmediate as aMoment } from 'node:timers/promises';
import { ChartpilotError } from '../../runtime/errors.ts';

export interface BinaryPaths {
  /** @throws ChartpilotError ENVOY_CHANGED if the file was overwritten since it was checked */
  pathOf(name: string): string;
}

export interface OpenBinary {
  readonly fd: number;
  readonly realPath: string;
  readonly stats: BigIntStats;
}

export interface DescribedBinary {
  readonly name: string;
  readonly realPath: string;
  /** Consists of device, inode, size and modification time. */
  readonly identity: string;
  readonly digest?: string;
}

interface PinnedBinary extends OpenBinary {
  /** SHA-256 of the content; computed when first needed, because that takes 0.5 s. */
  digest?: string;
}

/** The binary of the first epoch has a name, because its digest takes 0.5 s and is needed only when a second file appears. */
export const firstBinary = 'first';

/** O_PATH: also opens a file that is executable but not readable. */
const pathOnly = 0o10000000;

export class EnvoyBinaries implements BinaryPaths {
  readonly #pinnedBinaries = new Map<string, PinnedBinary>();
  #newestName = firstBinary;

  constructor(path: string) {
    if (path !== '') this.#pinnedBinaries.set(firstBinary, openBinary(path));
  }

  pathOf(name: string): string {
    const binary = this.#pinnedBinaries.get(name);
    if (binary === undefined) throw new Error(`unknown Envoy binary ${name}`);
    this.#newestName = name;
    requireUnchanged(binary);
    return isFileAt(binary.realPath, binary.stats) ? binary.realPath : openFilePath(binary.fd);
  }

  get newestPath(): string {
    return this.pathOf(this.#newestName);
  }

  /** `undefined` if the file is new or has changed and must be checked. */
  nameOf(stats: BigIntStats): string | undefined {
    for (const [name, binary] of this.#pinnedBinaries) if (isSameFile(binary.stats, stats)) return name;
    return undefined;
  }

  async nameOfDigest(digest: string, signal: AbortSignal): Promise<string | undefined> {
    const first = this.#pinnedBinaries.get(firstBinary);
    if (first !== undefined) first.digest ??= await digestOf(first.fd, signal);
    return [...this.#pinnedBinaries].find(([, binary]) => binary.digest === digest)?.[0];
  }

  describe(): DescribedBinary[] {
    return [...this.#pinnedBinaries].map(([name, { realPath, stats, digest }]) => ({
      name,
      realPath,
      identity: identityOf(stats),
      ...(digest !== undefined && { digest }),
    }));
  }

  /** Pins a file that the previous agent had pinned: from its path if the file there is the same, otherwise from a process that runs it. */
  restore({ name, realPath, identity, digest }: DescribedBinary, runningPid: number | undefined): boolean {
    const openedBinary = undefinedIfThrows(() => openBinary(realPath));
    const isSameBinary = openedBinary !== undefined && identityOf(openedBinary.stats) === identity;
    if (openedBinary !== undefined && !isSameBinary) closeSync(openedBinary.fd);
    const foundBinary = isSameBinary
      ? openedBinary
      : runningPid === undefined
        ? undefined
        : undefinedIfThrows(() => openExecutableOf(runningPid));
    if (foundBinary === undefined) return false;
    this.pin(name, digest, foundBinary);
    return true;
  }

  /** Replaces a file of the same name, which has the same content but may no longer have a path. */
  pin(name: string, digest: string | undefined, openBinary: OpenBinary): void {
    const previousBinary = this.#pinnedBinaries.get(name);
    if (previousBinary !== undefined) closeSync(previousBinary.fd);
    this.#pinnedBinaries.set(name, { ...openBinary, ...(digest !== undefined && { digest }) });
  }

  closeExcept(names: ReadonlySet<string>): void {
    for (const [name, { fd }] of this.#pinnedBinaries) {
      if (names.has(name)) continue;
      this.#pinnedBinaries.delete(name);
      closeSync(fd);
    }
    if (!this.#pinnedBinaries.has(this.#newestName))
      this.#newestName = [...this.#pinnedBinaries.keys()].at(-1) ?? firstBinary;
  }

  close(): void {
    this.closeExcept(new Set());
  }
}

export function openBinary(path: string): OpenBinary {
  const realPath = realpathSync(path);
  const fd = openSync(realPath, pathOnly | constants.O_NONBLOCK);
  return { fd, realPath, stats: fstatSync(fd, { bigint: true }) };
}

/** Opens the executable even if it was moved or removed. */
function openExecutableOf(pid: number): OpenBinary {
  const fd = openSync(`/proc/${pid}/exe`, pathOnly | constants.O_NONBLOCK);
  return { fd, realPath: realpathOf(fd), stats: fstatSync(fd, { bigint: true }) };
}

/** The suffix is ` (deleted)` if the file was removed. */
const realpathOf = (fd: number): string => readlinkSync(openFilePath(fd));

const identityOf = ({ dev, ino, size, mtimeNs }: BigIntStats): string => `${dev}:${ino}:${size}:${mtimeNs}`;

function undefinedIfThrows<A>(find: () => A): A | undefined {
  try {
    return find();
  } catch {
    return undefined;
  }
}

/** Child processes of the agent can execute an open file by this path, even if its own path no longer exists. */
export const openFilePath = (fd: number): string => `/proc/${process.pid}/fd/${fd}`;

const chunkBytes = 1 << 20;

/** Yields after each MiB, so that the event loop is not blocked. */
export async function digestOf(fd: number, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  await using file = await open(openFilePath(fd));
  const chunk = Buffer.alloc(chunkBytes);
  for (;;) {
    const { bytesRead } = await file.read(chunk);
    if (bytesRead === 0) return hash.digest('hex');
    hash.update(chunk.subarray(0, bytesRead));
    signal.throwIfAborted();
    await aMoment();
  }
}

/** The kernel protects a file from writes only while a process executes it. */
function requireUnchanged({ fd, realPath, stats }: PinnedBinary): void {
  const currentStats = fstatSync(fd, { bigint: true });
  if (currentStats.size === stats.size && currentStats.mtimeNs === stats.mtimeNs) return;
  throw new ChartpilotError('ENVOY_CHANGED', `${realPath} was overwritten while no Envoy was running from it`, {
    hint: 'Write a new file and rename it over the path: the agent then checks it and hot restarts.',
    fields: { path: realPath },
  });
}

/** Compares times too, because the inode number of a removed file can be reused. */
const isSameFile = (stats: BigIntStats, other: BigIntStats): boolean =>
  stats.dev === other.dev &&
  stats.ino === other.ino &&
  stats.size === other.size &&
  stats.mtimeNs === other.mtimeNs &&
  stats.ctimeNs === other.ctimeNs;

function isFileAt(path: string, { dev, ino }: BigIntStats): boolean {
  try {
    const currentStats = statSync(path, { bigint: true });
    return currentStats.dev === dev && currentStats.ino === ino;
  } catch {
    return false;
  }
}
