/** Only directories are watched, not files, so that thousands of files cost nothing until one changes. */
import { type Dir, type FSWatcher, lstatSync, opendirSync, type Stats, statSync, watch } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isSystemError } from '../../../runtime/errors.ts';
import { throwUncaught } from '../../../runtime/fences/uncaught.ts';
import { isOnKernelFileSystem } from '../../../runtime/files/bounded-file.ts';
import type { StopWatching, WatchHandlers } from '../../../runtime/files/file-watch.ts';
import type { Steps } from '../../../runtime/turns.ts';
import { defaultConfigLimits, maxDirectoryDepth } from './config-limits.ts';

/** Interval of complete inspections, because operating systems can drop events during a burst. */
const inspectionIntervalMs = 60_000;

/** Watches are a limited kernel resource, shared with other processes. Directories without a watch are inspected. */
const maxWatches = 8_192;

const entriesPerStep = 256;

const maxTurnMs = 10;

/** More events than this within {@link burstWindowMs} are a burst. Saving a few files causes fewer. */
const burstEvents = 16;
const burstWindowMs = 100;

const maxPathsPerTurn = 256;

/**
 * Includes link targets. If a tree cannot be watched in one step, the directory is reported again afterwards. A tree that exceeds the limit is
 * watched partially.
 *
 * A reported path is a file that was written, added or removed, or a directory below which anything may have changed.
 *
 * @param onInspecting called each minute before the directory is reported
 */
export function watchDirectory(
  directory: string,
  handlers: WatchHandlers,
  { maxEntries } = defaultConfigLimits,
  onInspecting: () => void = () => {},
): StopWatching {
  const tree = new TreeWatch(resolve(directory), handlers, maxEntries, onInspecting);
  tree.open();
  return () => tree.close();
}

interface WatchedDirectory {
  readonly watcher: FSWatcher;
  readonly identity: string;
  names: number;
}

interface PendingDirectory {
  readonly path: string;
  readonly parentIdentities: readonly string[];
}

class TreeWatch {
  readonly #root: string;
  readonly #handlers: WatchHandlers;
  readonly #maxEntries: number;
  readonly #onInspecting: () => void;
  readonly #watchesByPath = new Map<string, WatchedDirectory>();
  #names = 0;
  #isLimitReported = false;
  #pending: PendingDirectory[] = [];
  #pendingLinks: PendingDirectory[] = [];
  #current: Steps<void> | undefined;
  #next: NodeJS.Immediate | undefined;
  /** Whether other work ran after the pending paths were requested. */
  #isResumed = false;
  /** Whether a path was watched later than requested, so that a change may have been missed. */
  #isInspectionLate = false;
  readonly #changedPaths = new Set<string>();
  readonly #renamedPaths = new Set<string>();
  #reportImmediate: NodeJS.Immediate | undefined;
  #recentEvents = { since: Number.NEGATIVE_INFINITY, events: 0 };
  #parentWatcher: FSWatcher | undefined;
  #parentIdentity = '';
  #inspection: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(root: string, handlers: WatchHandlers, maxEntries: number, onInspecting: () => void) {
    this.#root = root;
    this.#handlers = handlers;
    this.#maxEntries = maxEntries;
    this.#onInspecting = onInspecting;
  }

  open(): void {
    this.#watchParent();
    this.#watchTree(this.#root);
    this.#inspection = setInterval(() => this.#inspect(), inspectionIntervalMs).unref();
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#inspection);
    clearImmediate(this.#next);
    clearImmediate(this.#reportImmediate);
    this.#current?.return();
    this.#parentWatcher?.close();
    for (const { watcher } of this.#watchesByPath.values()) watcher.close();
    this.#watchesByPath.clear();
  }

  #report(path: string, isBurst = false): void {
    if (!this.#isClosed) this.#handlers.changed(path, isBurst);
  }

  #countEvents(events: number): boolean {
    const now = performance.now();
    if (now - this.#recentEvents.since > burstWindowMs) this.#recentEvents = { since: now, events: 0 };
    this.#recentEvents.events += events;
    return this.#recentEvents.events >= burstEvents;
  }

  #reportFailure(error: unknown): void {
    if (!this.#isClosed) this.#handlers.failed(error);
  }

  /** Inspections detect changes in directories beyond the limit. */
  #reportLimit(excessText: string): void {
    if (!this.#isLimitReported)
      this.#reportFailure(
        new Error(
          `${this.#root} has ${excessText}, the limit of file watches: changes of the rest are detected within a minute`,
        ),
      );
    this.#isLimitReported = true;
  }

  #inspect(): void {
    this.#onInspecting();
    if (this.#isUnchanged(this.#root)) this.#report(this.#root);
    else this.#renewRoot();
  }

  #onEvent(directory: string, event: string, name: string | null): void {
    const path = name === null ? directory : join(directory, name);
    // An entry was added, removed or renamed. Its inode number may be reused, so it does not identify the entry.
    if (event === 'rename') this.#renamedPaths.add(path);
    // A removed or renamed directory reports its own name.
    if (name === null || name === basename(directory)) {
      this.#renamedPaths.add(directory);
      this.#queueReport(directory);
    }
    this.#queueReport(path);
  }

  #queueReport(path: string): void {
    if (this.#isClosed) return;
    if (this.#changedPaths.size <= maxPathsPerTurn) this.#changedPaths.add(path);
    this.#reportImmediate ??= setImmediate(() => {
      this.#reportImmediate = undefined;
      const [changedPaths, renamedPaths] = [[...this.#changedPaths], [...this.#renamedPaths]];
      this.#changedPaths.clear();
      this.#renamedPaths.clear();
      if (renamedPaths.includes(this.#root)) this.#renewRoot();
      else if (renamedPaths.length > 0) this.#renewWatches(renamedPaths);
      const isBurst = this.#countEvents(changedPaths.length);
      for (const changedPath of changedPaths.length > maxPathsPerTurn ? [this.#root] : changedPaths)
        this.#report(changedPath, isBurst);
    });
  }

  #isUnchanged(path: string): boolean {
    const stats = statsOf(path);
    return stats !== undefined && identityOf(stats) === this.#watchesByPath.get(path)?.identity;
  }

  #renewWatches(paths: readonly string[]): void {
    for (const path of paths) {
      this.#unwatchTree(path);
      this.#pending.push({ path, parentIdentities: [] });
    }
    this.#continue();
  }

  /** Files of a directory are covered by its watch. A link may refer to a single file. */
  #watchTree(path: string): void {
    this.#pending.push({ path, parentIdentities: [] });
    this.#continue();
  }

  #continue(): void {
    if (this.#isClosed || this.#next !== undefined) return;
    const deadline = performance.now() + maxTurnMs;
    while (performance.now() < deadline) {
      if (this.#current === undefined) {
        const watchPlace = this.#pending.pop() ?? this.#pendingLinks.pop();
        if (watchPlace === undefined) {
          if (this.#isInspectionLate) this.#report(this.#root);
          this.#isInspectionLate = false;
          this.#isResumed = false;
          return;
        }
        this.#current = this.#watchSteps(watchPlace);
      }
      try {
        if (this.#current.next().done) this.#current = undefined;
      } catch (error) {
        this.#current = undefined;
        throwUncaught(error);
      }
    }
    this.#isResumed = true;
    this.#next = setImmediate(() => {
      this.#next = undefined;
      this.#continue();
    });
  }

  *#watchSteps({ path, parentIdentities }: PendingDirectory): Steps<void> {
    const stats = statsOf(path);
    if (stats === undefined || this.#watchesByPath.has(path)) return;
    const identity = identityOf(stats);
    if (!stats.isDirectory()) {
      if (stats.isFile() && isLink(path)) this.#watch(path, identity, (event) => this.#onLinkedFileEvent(path, event));
      return;
    }
    if (parentIdentities.includes(identity) || parentIdentities.length >= maxDirectoryDepth) return;
    if (path !== this.#root && isKernelPath(path)) return;
    const newWatch = this.#watch(path, identity, (event, name) => this.#onEvent(path, event, name));
    if (newWatch === undefined) return;
    let directory: Dir | undefined;
    try {
      directory = opendirSync(path, { bufferSize: entriesPerStep });
      for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
        if (this.#names >= this.#maxEntries) return this.#reportLimit(`more than ${this.#maxEntries} entries`);
        this.#names++;
        newWatch.names++;
        const watchPlace = { path: join(path, entry.name), parentIdentities: [...parentIdentities, identity] };
        if (entry.isDirectory()) this.#pending.push(watchPlace);
        else if (entry.isSymbolicLink()) this.#pendingLinks.push(watchPlace);
        yield;
      }
    } catch (error) {
      // The parent's watch reports a removed directory, and the reader reports an unreadable one.
      if (!isSystemError(error, 'ENOENT') && !isSystemError(error, 'EACCES')) this.#reportFailure(error);
    } finally {
      directory?.closeSync();
    }
  }

  /** `undefined` if the path cannot be watched, in which case nothing below it is watched. */
  #watch(
    path: string,
    identity: string,
    onEvent: (event: string, name: string | null) => void,
  ): WatchedDirectory | undefined {
    if (this.#watchesByPath.size >= maxWatches) {
      this.#reportLimit(`more than ${maxWatches} directories`);
      return undefined;
    }
    if (this.#isResumed) this.#isInspectionLate = true;
    try {
      const watcher = watch(path, (event, name) => onEvent(event, name));
      watcher.on('error', () => {
        this.#unwatchTree(path);
        this.#queueReport(dirname(path));
      });
      const watchedDirectory: WatchedDirectory = { watcher, identity, names: 0 };
      this.#watchesByPath.set(path, watchedDirectory);
      return watchedDirectory;
    } catch (error) {
      if (!isSystemError(error, 'ENOENT') && !isSystemError(error, 'EACCES')) this.#reportFailure(error);
      return undefined;
    }
  }

  #onLinkedFileEvent(path: string, event: string): void {
    if (event === 'rename') this.#renamedPaths.add(path);
    this.#queueReport(path);
  }

  #unwatch(path: string): void {
    const watchedDirectory = this.#watchesByPath.get(path);
    watchedDirectory?.watcher.close();
    this.#names -= watchedDirectory?.names ?? 0;
    this.#watchesByPath.delete(path);
  }

  #unwatchTree(path: string): void {
    if (!this.#watchesByPath.has(path)) return;
    for (const watchedPath of [...this.#watchesByPath.keys()])
      if (watchedPath === path || watchedPath.startsWith(`${path}/`)) this.#unwatch(watchedPath);
  }

  #renewRoot(): void {
    if (this.#isClosed) return;
    this.#isLimitReported = false;
    this.#watchParent();
    this.#unwatchTree(this.#root);
    this.#watchTree(this.#root);
    this.#report(this.#root);
  }

  #watchParent(): void {
    let directory = dirname(this.#root);
    while (statsOf(directory) === undefined && dirname(directory) !== directory) directory = dirname(directory);
    const stats = statsOf(directory);
    const parentIdentity = stats === undefined ? '' : `${directory} ${identityOf(stats)}`;
    if (parentIdentity === this.#parentIdentity) return;
    this.#parentWatcher?.close();
    this.#parentWatcher = undefined;
    this.#parentIdentity = parentIdentity;
    if (stats === undefined) return;
    try {
      const childName = this.#root.slice(directory.length).split('/').find(Boolean);
      this.#parentWatcher = watch(directory, (event, name) => {
        if (event !== 'rename') return;
        if (name === null || name === childName || name === basename(directory)) this.#renewRoot();
      });
      this.#parentWatcher.on('error', () => this.#renewRoot());
    } catch (error) {
      if (!isSystemError(error, 'ENOENT') && !isSystemError(error, 'EACCES')) this.#reportFailure(error);
    }
    // A directory may have appeared between check and watch.
    if (statsOf(this.#root) !== undefined && directory !== dirname(this.#root)) this.#watchParent();
  }
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function isKernelPath(path: string): boolean {
  try {
    return isOnKernelFileSystem(path);
  } catch {
    return false;
  }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

function identityOf({ dev, ino }: Stats): string {
  return `${dev}:${ino}`;
}
