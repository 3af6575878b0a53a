/**
 * Watches directories rather than files: Kubernetes replaces files by renaming a symbolic link beside them, and a watch of a file ends with the file.
 *
 * Uses Node's watch rather than chokidar's: for one directory the kernel reports all that is needed, the watch is established synchronously, and only
 * this file calls the file system.
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
import { certificateFile, kubernetesInternal, maxFiles } from './certificate-files.ts';

export interface WatchTimes {
  /** Interval of checks that the path still names the same directory. */
  readonly identityCheckMs: number;
  /** Interval of polling, which finds changes that the kernel did not report. */
  readonly contentPollMs: number;
}

const defaultTimes: WatchTimes = { identityCheckMs: 1_000, contentPollMs: 60_000 };

export interface WatchedFiles {
  readonly watch: (path: string) => FSWatcher;
  readonly readdir: (path: string) => Promise<string[]>;
  readonly stat: typeof stat;
}

const hostFiles: WatchedFiles = { watch, readdir, stat };

type Report = WatchedFilesChanged | WatchBegan | WatchFailed | DirectoryMissing | DirectoryFound;

/** Links of Kubernetes are always watched. */
export type WatchedNames = (name: string) => boolean;

export function directoryWatchWithEffects(names?: WatchedNames) {
  return directoryWatchMachine.provide({ actors: { watchDirectory: watchDirectory({}, {}, names) } });
}

/** The chart handles a failed watch. */
export function watchDirectory(
  times: Partial<WatchTimes> = {},
  files: Partial<WatchedFiles> = {},
  names: WatchedNames = (name) => certificateFile.test(name),
) {
  // A check that hangs continues after its watch was aborted.
  const hanging = new Set<string>();
  return fromCallback<{ type: never }, { directory: string; knownHash: string | null }>(({ input, sendBack }) => {
    const changeBurst = new BurstReporter((path) =>
      sendBack({ type: 'files.changed', path } satisfies WatchedFilesChanged),
    );
    const report = (event: Report): void => {
      if (event.type === 'files.changed') changeBurst.report(event.path);
      else sendBack(event);
    };
    const watch = new DirectoryWatch(input, {
      report,
      hangingDirectories: hanging,
      times: { ...defaultTimes, ...times },
      files: { ...hostFiles, ...files },
      isWatchedName: (name) => names(name) || kubernetesInternal.test(name),
    });
    return () => {
      watch.close();
      changeBurst.close();
    };
  });
}

const burstMs = 100;

/** Reports the first change immediately, and later ones of the same burst together. */
class BurstReporter {
  readonly #send: (path: string) => void;
  #timer: NodeJS.Timeout | undefined;
  #lastPath: string | undefined;

  constructor(send: (path: string) => void) {
    this.#send = send;
  }

  report(path: string): void {
    if (this.#timer !== undefined) {
      this.#lastPath = path;
      return;
    }
    this.#send(path);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const path = this.#lastPath;
      this.#lastPath = undefined;
      if (path !== undefined) this.report(path);
    }, burstMs);
  }

  close(): void {
    clearTimeout(this.#timer);
  }
}

interface WatchEnvironment {
  readonly report: (event: Report) => void;
  /** A check of an aborted watch is pending for these directories. */
  readonly hangingDirectories: Set<string>;
  readonly times: WatchTimes;
  readonly files: WatchedFiles;
  /** Other files may change frequently. */
  readonly isWatchedName: WatchedNames;
}

class DirectoryWatch {
  readonly #directory: string;
  readonly #environment: WatchEnvironment;
  readonly #timer: NodeJS.Timeout;
  #watcher: FSWatcher | undefined;
  /** Undefined before the first check, and after the directory was removed. */
  #identity: string | undefined;
  #isFirstCheck = true;
  #isChecking = false;
  #content: string | null;
  readonly #startedAtMs = Date.now();
  #comparedAt = 0;
  #isClosed = false;

  constructor(
    { directory, knownHash: seenHash }: { directory: string; knownHash: string | null },
    environment: WatchEnvironment,
  ) {
    this.#directory = resolve(directory);
    this.#content = seenHash;
    this.#environment = environment;
    this.#timer = setInterval(() => void this.#check(), environment.times.identityCheckMs);
    void this.#check();
  }

  close(): void {
    this.#isClosed = true;
    if (this.#isChecking) this.#environment.hangingDirectories.add(this.#directory);
    clearInterval(this.#timer);
    this.#unwatch();
  }

  async #check(): Promise<void> {
    const { hangingDirectories } = this.#environment;
    if (this.#isChecking || this.#isClosed || hangingDirectories.has(this.#directory)) return;
    this.#isChecking = true;
    try {
      await this.#ensureWatched();
    } catch (error) {
      this.#reportFailure(error);
    } finally {
      this.#isChecking = false;
      if (this.#isClosed) hangingDirectories.delete(this.#directory);
    }
  }

  async #ensureWatched(): Promise<void> {
    const { files, times } = this.#environment;
    const identity = await identityOf(this.#directory, files);
    // Compare with the content before the watch, or with the current content if that is unknown.
    if (this.#isFirstCheck) await this.#compareFirst();
    if (this.#isClosed) return;
    if (identity !== this.#identity) this.#watchNewDirectory(identity);
    this.#isFirstCheck = false;
    if (identity === emptyContent) return;
    if (this.#watcher === undefined) await this.#watch();
    else if (performance.now() - this.#comparedAt >= times.contentPollMs) await this.#compare();
  }

  #watchNewDirectory(identity: string): void {
    const { report } = this.#environment;
    this.#unwatch();
    this.#identity = identity;
    if (identity === emptyContent) report({ type: 'directory.missing' });
    else if (!this.#isFirstCheck) report({ type: 'directory.found' });
    if (!this.#isFirstCheck) this.#reportChange(this.#directory);
  }

  async #watch(): Promise<void> {
    const watcher = this.#openWatcher();
    if (watcher === undefined) return;
    this.#watcher = watcher;
    watcher.on('change', (event, name) => this.#onEvent(event, name === null ? null : String(name)));
    watcher.on('error', (error) => this.#reportFailure(error));
    this.#environment.report({ type: 'watch.began' });
    // Detects changes before the watch was established.
    await this.#compare();
  }

  #openWatcher(): FSWatcher | undefined {
    try {
      return this.#environment.files.watch(this.#directory);
    } catch (error) {
      if (isSystemError(error, 'ENOENT')) return undefined;
      throw error;
    }
  }

  #onEvent(event: string, name: string | null): void {
    const isItself = name === basename(this.#directory);
    if (name === null || isItself) this.#reportChange(this.#directory);
    else if (this.#environment.isWatchedName(name)) this.#reportChange(join(this.#directory, name));
    // The directory was removed or moved together with its watch. The next directory at the path may have the same inode.
    if (!isItself || event !== 'rename') return;
    this.#unwatch();
    this.#identity = undefined;
    void this.#check();
  }

  #reportChange(path: string): void {
    this.#environment.report({ type: 'files.changed', path });
  }

  #reportFailure(error: unknown): void {
    if (this.#isClosed) return;
    this.close();
    const reason = `cannot watch ${this.#directory}: ${messageOf(error)}`;
    this.#environment.report({ type: 'watch.failed', reason, knownHash: this.#content });
  }

  #unwatch(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  async #compareFirst(): Promise<void> {
    const isContentKnown = this.#content !== null;
    const newestMs = await this.#compare();
    if (isContentKnown || this.#isClosed) return;
    // The chart reads the files when it orders the watch, so later changes are reported.
    const hasChanged = newestMs > this.#startedAtMs - clockTickMs;
    const hasTakenLong = Date.now() - this.#startedAtMs > this.#environment.times.identityCheckMs;
    if (hasChanged || hasTakenLong) this.#reportChange(this.#directory);
  }

  async #compare(): Promise<number> {
    const { seen, newestMs } = await contentsOf(this.#directory, this.#environment);
    if (this.#isClosed) return newestMs;
    const previousContent = this.#content;
    this.#content = seen;
    this.#comparedAt = performance.now();
    if (previousContent !== null && previousContent !== seen) this.#reportChange(this.#directory);
    return newestMs;
  }
}

/** Granularity of the kernel's clock for files. */
const clockTickMs = 20;

const emptyContent = 'nothing';

async function identityOf(directory: string, files: WatchedFiles): Promise<string> {
  try {
    const directoryStat = await files.stat(directory, { bigint: true });
    return directoryStat.isDirectory() ? `${directoryStat.dev}:${directoryStat.ino}` : emptyContent;
  } catch (error) {
    if (isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR')) return emptyContent;
    throw error;
  }
}

/**
 * The hash includes change times, which cannot be set, so it never repeats. Files are read sequentially, so that a check blocks at most one thread.
 */
async function contentsOf(
  directory: string,
  { files, isWatchedName }: Pick<WatchEnvironment, 'files' | 'isWatchedName'>,
): Promise<{ seen: string; newestMs: number }> {
  const hash = createHash('sha256');
  const fileNames = await files.readdir(directory).catch(messageOf);
  if (typeof fileNames === 'string') return { seen: hash.update(fileNames).digest('hex'), newestMs: 0 };
  const names = fileNames.filter(isWatchedName).sort();
  hash.update(`${names.length}`);
  // The directory's time changes with added and removed names.
  let newestMs = (await stat(directory).catch(() => undefined))?.mtimeMs ?? 0;
  for (const name of names.slice(0, maxFiles)) {
    const path = join(directory, name);
    const link = await lstat(path, { bigint: true }).catch(() => undefined);
    const targetStat = await files.stat(path, { bigint: true }).catch(() => undefined);
    hash.update(
      `\n${name} ${link?.ino} ${link?.ctimeNs} ${targetStat?.ino} ${targetStat?.size} ${targetStat?.mtimeNs} ${targetStat?.ctimeNs}`,
    );
    newestMs = Math.max(newestMs, Number(link?.ctimeMs ?? 0), Number(targetStat?.ctimeMs ?? 0));
  }
  return { seen: hash.digest('hex'), newestMs };
}
