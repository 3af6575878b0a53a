/**
 * Effects of the chart `directory-watch`: the watch of a directory (spec/agent.md §3.2–3.4). Directories are watched, never files: Kubernetes
 * replaces files by renaming a symbolic link beside them, and a watch on a file dies with the file.
 *
 * Node's own watch, not chokidar's: of one directory the kernel tells all that is asked for here, the watch is there as soon as
 * it is asked for, and no call for a file is made that this effect does not know of. On a file system that hangs each of those
 * holds one of the process's four threads for files.
 */
import { createHash } from 'node:crypto';
import { type FSWatcher, watch } from 'node:fs';
import { lstat, readdir, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { fromCallback } from 'xstate';
import { directoryWatchMachine } from '../../../machines/agent/files/directory-watch.machine.ts';
import type {
  DirectoryFound,
  DirectoryMissing,
  WatchBegan,
  WatchedFilesChanged,
  WatchFailed,
} from '../../../machines/agent/protocol.ts';
import { isSystemError, messageOf } from '../../runtime/errors.ts';
import { certificateFile, kubernetesInternal, mostFiles } from './certificate-files.ts';

export interface WatchTimes {
  /** How often a directory is looked for: it may be missing, or be another one than before. */
  readonly identityMs: number;
  /** How often contents are compared, for changes that the kernel did not tell of. */
  readonly safetyMs: number;
}

const defaultTimes: WatchTimes = { identityMs: 1_000, safetyMs: 60_000 };

/** What the effect asks of the operating system. */
export interface WatchedFiles {
  readonly watch: (path: string) => FSWatcher;
  readonly readdir: (path: string) => Promise<string[]>;
  readonly stat: typeof stat;
}

const ofThisHost: WatchedFiles = { watch, readdir, stat };

type Report = WatchedFilesChanged | WatchBegan | WatchFailed | DirectoryMissing | DirectoryFound;

/** What of a directory is watched: certificates, unless somebody says otherwise. Kubernetes' own links always are. */
export type WatchedNames = (name: string) => boolean;

/** @param names which names are watched, certificates by default */
export function directoryWatchWithEffects(names?: WatchedNames) {
  return directoryWatchMachine.provide({ actors: { watchDirectory: watchDirectory({}, {}, names) } });
}

/** The watch effect of one directory. What follows a watch that fails is for the chart to say. */
export function watchDirectory(
  times: Partial<WatchTimes> = {},
  files: Partial<WatchedFiles> = {},
  names: WatchedNames = (name) => certificateFile.test(name),
) {
  // A look that hangs goes on when its watch is given up.
  const leftBehind = new Set<string>();
  return fromCallback<{ type: never }, { directory: string; seen: string | null }>(({ input, sendBack }) => {
    const burst = new Burst((path) => sendBack({ type: 'files.changed', path } satisfies WatchedFilesChanged));
    const report = (event: Report): void => {
      if (event.type === 'files.changed') burst.tell(event.path);
      else sendBack(event);
    };
    const watch = new DirectoryWatch(input, {
      report,
      leftBehind,
      times: { ...defaultTimes, ...times },
      files: { ...ofThisHost, ...files },
      concerns: (name) => names(name) || kubernetesInternal.test(name),
    });
    return () => {
      watch.close();
      burst.close();
    };
  });
}

const burstMs = 100;

/** Thousand changes a second are a few: the first is told at once, what follows it closely as one. */
class Burst {
  readonly #told: (path: string) => void;
  #timer: NodeJS.Timeout | undefined;
  #last: string | undefined;

  constructor(told: (path: string) => void) {
    this.#told = told;
  }

  tell(path: string): void {
    if (this.#timer !== undefined) {
      this.#last = path;
      return;
    }
    this.#told(path);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const path = this.#last;
      this.#last = undefined;
      if (path !== undefined) this.tell(path);
    }, burstMs);
  }

  close(): void {
    clearTimeout(this.#timer);
  }
}

interface WatchMeans {
  readonly report: (event: Report) => void;
  /** Directories that a watch which was given up still looks at. */
  readonly leftBehind: Set<string>;
  readonly times: WatchTimes;
  readonly files: WatchedFiles;
  /** Other programs may write other files beside those, as often as they like. */
  readonly concerns: WatchedNames;
}

/** Watches one path, whatever directory is at that path now. */
class DirectoryWatch {
  readonly #directory: string;
  readonly #means: WatchMeans;
  readonly #timer: NodeJS.Timeout;
  #watcher: FSWatcher | undefined;
  /** Which directory is at the path; undefined before the first look, and when the watched one has left. */
  #there: string | undefined;
  #isFirstLook = true;
  #looking = false;
  /** What was there when it was compared last. */
  #seen: string | null;
  readonly #beganAtMs = Date.now();
  #comparedAt = 0;
  #closed = false;

  constructor({ directory, seen }: { directory: string; seen: string | null }, means: WatchMeans) {
    this.#directory = resolve(directory);
    this.#seen = seen;
    this.#means = means;
    this.#timer = setInterval(() => void this.#look(), means.times.identityMs);
    void this.#look();
  }

  close(): void {
    this.#closed = true;
    if (this.#looking) this.#means.leftBehind.add(this.#directory);
    clearInterval(this.#timer);
    this.#unwatch();
  }

  /** One look at a time: what hangs is not asked again. */
  async #look(): Promise<void> {
    const { leftBehind } = this.#means;
    if (this.#looking || this.#closed || leftBehind.has(this.#directory)) return;
    this.#looking = true;
    try {
      await this.#seeToIt();
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#looking = false;
      if (this.#closed) leftBehind.delete(this.#directory);
    }
  }

  /** Sees to it that the directory which is at the path now is the one that is watched. */
  async #seeToIt(): Promise<void> {
    const { files, times } = this.#means;
    const there = await whatIsAt(this.#directory, files);
    // What was there before the watch, or is when it cannot be had.
    if (this.#isFirstLook) await this.#compareFirst();
    if (this.#closed) return;
    if (there !== this.#there) this.#meet(there);
    this.#isFirstLook = false;
    if (there === nothing) return;
    if (this.#watcher === undefined) await this.#watch();
    else if (performance.now() - this.#comparedAt >= times.safetyMs) await this.#compare();
  }

  #meet(there: string): void {
    const { report } = this.#means;
    this.#unwatch();
    this.#there = there;
    if (there === nothing) report({ type: 'directory.missing' });
    else if (!this.#isFirstLook) report({ type: 'directory.found' });
    if (!this.#isFirstLook) this.#changed(this.#directory);
  }

  async #watch(): Promise<void> {
    const watcher = this.#begun();
    if (watcher === undefined) return;
    this.#watcher = watcher;
    watcher.on('change', (event, name) => this.#hear(event, name === null ? null : String(name)));
    watcher.on('error', (error) => this.#failed(error));
    this.#means.report({ type: 'watch.began' });
    // What changed before the watch was in place was told to nobody.
    await this.#compare();
  }

  /** undefined: it has just left, which the next look tells. */
  #begun(): FSWatcher | undefined {
    try {
      return this.#means.files.watch(this.#directory);
    } catch (error) {
      if (isSystemError(error, 'ENOENT')) return undefined;
      throw error;
    }
  }

  #hear(event: string, name: string | null): void {
    const isItself = name === basename(this.#directory);
    if (name === null || isItself) this.#changed(this.#directory);
    else if (this.#means.concerns(name)) this.#changed(join(this.#directory, name));
    // The directory is gone or has been moved, and the watch with it. The next one may have the same inode.
    if (!isItself || event !== 'rename') return;
    this.#unwatch();
    this.#there = undefined;
    void this.#look();
  }

  #changed(path: string): void {
    this.#means.report({ type: 'files.changed', path });
  }

  #failed(error: unknown): void {
    if (this.#closed) return;
    this.close();
    const reason = `cannot watch ${this.#directory}: ${messageOf(error)}`;
    this.#means.report({ type: 'watch.failed', reason, seen: this.#seen });
  }

  #unwatch(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  async #compareFirst(): Promise<void> {
    const isKnown = this.#seen !== null;
    const newestMs = await this.#compare();
    if (isKnown || this.#closed) return;
    // The files are read when the watch is ordered: of what changed from then on nobody else would tell. Another host's clock may
    // be wrong; where this took long, it may all be other.
    const hasChanged = newestMs > this.#beganAtMs - clockTickMs;
    const hasTakenLong = Date.now() - this.#beganAtMs > this.#means.times.identityMs;
    if (hasChanged || hasTakenLong) this.#changed(this.#directory);
  }

  /** @returns when something changed there last, in milliseconds since 1970 */
  async #compare(): Promise<number> {
    const { seen, newestMs } = await contentsOf(this.#directory, this.#means);
    if (this.#closed) return newestMs;
    const before = this.#seen;
    this.#seen = seen;
    this.#comparedAt = performance.now();
    if (before !== null && before !== seen) this.#changed(this.#directory);
    return newestMs;
  }
}

/** The kernel's clock for files may be so much behind. */
const clockTickMs = 20;

const nothing = 'nothing';

/** Which directory it is, by device and inode. */
async function whatIsAt(directory: string, files: WatchedFiles): Promise<string> {
  try {
    const found = await files.stat(directory, { bigint: true });
    return found.isDirectory() ? `${found.dev}:${found.ino}` : nothing;
  } catch (error) {
    if (isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR')) return nothing;
    throw error;
  }
}

/**
 * A hash that changes whenever a file that is read does, as far as that shows from outside, and never comes back: the times at
 * which files and links were changed are nobody's to set. File after file: no look holds more than one thread.
 */
async function contentsOf(
  directory: string,
  { files, concerns }: Pick<WatchMeans, 'files' | 'concerns'>,
): Promise<{ seen: string; newestMs: number }> {
  const hash = createHash('sha256');
  const listed = await files.readdir(directory).catch(messageOf);
  if (typeof listed === 'string') return { seen: hash.update(listed).digest('hex'), newestMs: 0 };
  const names = listed.filter(concerns).sort();
  hash.update(`${names.length}`);
  // Of names that came or went.
  let newestMs = (await stat(directory).catch(() => undefined))?.mtimeMs ?? 0;
  for (const name of names.slice(0, mostFiles)) {
    const path = join(directory, name);
    const link = await lstat(path, { bigint: true }).catch(() => undefined);
    const found = await files.stat(path, { bigint: true }).catch(() => undefined);
    hash.update(
      `\n${name} ${link?.ino} ${link?.ctimeNs} ${found?.ino} ${found?.size} ${found?.mtimeNs} ${found?.ctimeNs}`,
    );
    newestMs = Math.max(newestMs, Number(link?.ctimeMs ?? 0), Number(found?.ctimeMs ?? 0));
  }
  return { seen: hash.digest('hex'), newestMs };
}
