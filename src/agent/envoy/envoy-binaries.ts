/**
 * The files that Envoys are started from. Each is pinned when it is first known: held open, so that it can be executed whatever lies at its
 * path later, and known again by what it is. No restart takes up a file that nobody has looked at.
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

/** Where the file of an Envoy lies, for whoever starts one. */
export interface BinaryPaths {
  /**
   * Where the file of this name can be executed now.
   *
   * @throws ChartpilotError ENVOY_CHANGED when it has been written over since it was looked at
   */
  pathOf(name: string): string;
}

/** The file that is at a path now. */
export interface FoundBinary {
  readonly fd: number;
  /** Links followed. */
  readonly realPath: string;
  readonly stats: BigIntStats;
}

/** A file that was held, by what it was. */
export interface DescribedBinary {
  readonly name: string;
  readonly realPath: string;
  /** Device, number, size and time of the last change. */
  readonly identity: string;
  readonly digest?: string;
}

interface PinnedBinary extends FoundBinary {
  /** SHA-256 of its content; undefined until somebody asks. */
  digest?: string;
}

/** The one that the agent began with: its digest costs half a second, and nobody needs it before there is another file. */
export const firstBinary = 'first';

/** Opens without reading: a binary that may be executed only will do. */
const pathOnly = 0o10000000;

export class EnvoyBinaries implements BinaryPaths {
  readonly #pinned = new Map<string, PinnedBinary>();
  #newest = firstBinary;

  /** @param path of the file to begin with; empty: there is none */
  constructor(path: string) {
    if (path !== '') this.#pinned.set(firstBinary, findBinary(path));
  }

  pathOf(name: string): string {
    const binary = this.#pinned.get(name);
    if (binary === undefined) throw new Error(`unknown Envoy binary ${name}`);
    this.#newest = name;
    requireUnchanged(binary);
    return isAt(binary.realPath, binary.stats) ? binary.realPath : heldPath(binary.fd);
  }

  /** Path of the file that an Envoy was started from last, for a run of it that answers a question (its version, a bootstrap). */
  get newestPath(): string {
    return this.pathOf(this.#newest);
  }

  /** The name of a file that is held already and has not changed; undefined: it has to be looked at. */
  nameOf(stats: BigIntStats): string | undefined {
    for (const [name, binary] of this.#pinned) if (isSameFile(binary.stats, stats)) return name;
    return undefined;
  }

  /** The name of a file with this content that is held already. */
  async nameOfDigest(digest: string, signal: AbortSignal): Promise<string | undefined> {
    const first = this.#pinned.get(firstBinary);
    if (first !== undefined) first.digest ??= await digestOf(first.fd, signal);
    return [...this.#pinned].find(([, binary]) => binary.digest === digest)?.[0];
  }

  /** What is held, for an agent that comes after this one. */
  describe(): DescribedBinary[] {
    return [...this.#pinned].map(([name, { realPath, stats, digest }]) => ({
      name,
      realPath,
      identity: identityOf(stats),
      ...(digest !== undefined && { digest }),
    }));
  }

  /**
   * Holds again what an agent before this one has held: the file where it lay if it is still that one, else the one that an Envoy runs.
   *
   * @param runningPid of an Envoy that runs it, where there is one
   * @returns whether it is to be had
   */
  restore({ name, realPath, identity, digest }: DescribedBinary, runningPid: number | undefined): boolean {
    const there = quietly(() => findBinary(realPath));
    const isThere = there !== undefined && identityOf(there.stats) === identity;
    if (there !== undefined && !isThere) closeSync(there.fd);
    const found = isThere ? there : runningPid === undefined ? undefined : quietly(() => findRunning(runningPid));
    if (found === undefined) return false;
    this.pin(name, digest, found);
    return true;
  }

  /** Keeps a file. One of the same name had the same content: this one is at a path, and that one may be gone from its own. */
  pin(name: string, digest: string | undefined, found: FoundBinary): void {
    const before = this.#pinned.get(name);
    if (before !== undefined) closeSync(before.fd);
    this.#pinned.set(name, { ...found, ...(digest !== undefined && { digest }) });
  }

  /** Lets go of all others. */
  keep(names: ReadonlySet<string>): void {
    for (const [name, { fd }] of this.#pinned) {
      if (names.has(name)) continue;
      this.#pinned.delete(name);
      closeSync(fd);
    }
    if (!this.#pinned.has(this.#newest)) this.#newest = [...this.#pinned.keys()].at(-1) ?? firstBinary;
  }

  close(): void {
    this.keep(new Set());
  }
}

/**
 * The file at a path, held open.
 *
 * @throws Error of the operating system
 */
export function findBinary(path: string): FoundBinary {
  const realPath = realpathSync(path);
  const fd = openSync(realPath, pathOnly | constants.O_NONBLOCK);
  return { fd, realPath, stats: fstatSync(fd, { bigint: true }) };
}

/** The file that a process runs, also where it has been moved or removed. */
function findRunning(pid: number): FoundBinary {
  const fd = openSync(`/proc/${pid}/exe`, pathOnly | constants.O_NONBLOCK);
  return { fd, realPath: realpathOf(fd), stats: fstatSync(fd, { bigint: true }) };
}

/** The path of an open file as the kernel has it; ` (deleted)` follows where it is gone from there. */
const realpathOf = (fd: number): string => readlinkSync(heldPath(fd));

const identityOf = ({ dev, ino, size, mtimeNs }: BigIntStats): string => `${dev}:${ino}:${size}:${mtimeNs}`;

function quietly<A>(find: () => A): A | undefined {
  try {
    return find();
  } catch {
    return undefined;
  }
}

/** The path by which this process's children can execute a file that is held open, whatever has become of its own path. */
export const heldPath = (fd: number): string => `/proc/${process.pid}/fd/${fd}`;

const chunkBytes = 1 << 20;

/** SHA-256 of a file that is held open, in hexadecimal: a megabyte at a time, for nobody else is served meanwhile. */
export async function digestOf(fd: number, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  await using file = await open(heldPath(fd));
  const chunk = Buffer.alloc(chunkBytes);
  for (;;) {
    const { bytesRead } = await file.read(chunk);
    if (bytesRead === 0) return hash.digest('hex');
    hash.update(chunk.subarray(0, bytesRead));
    signal.throwIfAborted();
    await aMoment();
  }
}

/** A file that is being executed cannot be written; one that waits for its next Envoy can. */
function requireUnchanged({ fd, realPath, stats }: PinnedBinary): void {
  const now = fstatSync(fd, { bigint: true });
  if (now.size === stats.size && now.mtimeNs === stats.mtimeNs) return;
  throw new ChartpilotError('ENVOY_CHANGED', `${realPath} was overwritten while no Envoy was running from it`, {
    hint: 'Write a new file and rename it over the path: the agent then checks it and hot restarts.',
    fields: { path: realPath },
  });
}

/** Also the times: the number of a file that is gone may be another one's. */
const isSameFile = (one: BigIntStats, other: BigIntStats): boolean =>
  one.dev === other.dev &&
  one.ino === other.ino &&
  one.size === other.size &&
  one.mtimeNs === other.mtimeNs &&
  one.ctimeNs === other.ctimeNs;

function isAt(path: string, { dev, ino }: BigIntStats): boolean {
  try {
    const there = statSync(path, { bigint: true });
    return there.dev === dev && there.ino === ino;
  } catch {
    return false;
  }
}
