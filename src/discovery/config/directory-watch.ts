/**
 * Tells where in a directory something happened: one watch for each directory of the tree, none for its files, so that
 * thousands of files cost nothing until one changes, and every event comes at once with the path that it is about.
 */
import { type FSWatcher, lstatSync, readdirSync, type Stats, statSync, watch } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isSystemError } from '../../runtime/errors.ts';
import type { StopWatching, WatchHandlers } from './file-watch.ts';

/** An operating system may drop events when very many come at once: everything is looked at this often, whatever it said. */
const inspectionMs = 60_000;

/**
 * Watches a directory and all below it, hidden or reached through links too. It may be missing, come, go and come again.
 * What happens from the return of this call on is told.
 * The path is a file's when a file was written, came or went; it is a directory's where anything below may have changed.
 */
export function watchDirectory(directory: string, handlers: WatchHandlers): StopWatching {
  const tree = new TreeWatch(resolve(directory), handlers);
  tree.open();
  return () => tree.close();
}

interface Watched {
  readonly watcher: FSWatcher;
  /** Which directory or file it is, whatever its name is now. */
  readonly identity: string;
}

class TreeWatch {
  readonly #root: string;
  readonly #handlers: WatchHandlers;
  /** Directories of the tree, and files that links lead to. */
  readonly #watched = new Map<string, Watched>();
  /** The directory that the root, or the nearest above it that is missing, would come up in. */
  #above: FSWatcher | undefined;
  #aboveWatches = '';
  #inspection: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(root: string, handlers: WatchHandlers) {
    this.#root = root;
    this.#handlers = handlers;
  }

  open(): void {
    this.#watchAbove();
    this.#watchTree(this.#root);
    this.#inspection = setInterval(() => this.#inspect(), inspectionMs).unref();
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#inspection);
    this.#above?.close();
    for (const { watcher } of this.#watched.values()) watcher.close();
    this.#watched.clear();
  }

  #report(path: string): void {
    if (!this.#isClosed) this.#handlers.changed(path);
  }

  #fail(error: unknown): void {
    if (!this.#isClosed) this.#handlers.failed(error);
  }

  #inspect(): void {
    if (this.#isStill(this.#root)) this.#report(this.#root);
    else this.#renewRoot();
  }

  #happened(directory: string, event: string, name: string | null): void {
    if (this.#isClosed) return;
    const path = name === null ? directory : join(directory, name);
    // Something was made, removed or renamed. A number of an inode says nothing: it is given again.
    if (event === 'rename') {
      this.#unwatchTree(path);
      this.#watchTree(path);
    }
    // A directory that is itself removed or renamed is told by its own name.
    if (name === null || name === basename(directory)) {
      if (directory === this.#root) this.#renewRoot();
      else {
        this.#unwatchTree(directory);
        this.#watchTree(directory);
      }
      this.#report(directory);
    }
    this.#report(path);
  }

  #isStill(path: string): boolean {
    const stats = statsOf(path);
    return stats !== undefined && identityOf(stats) === this.#watched.get(path)?.identity;
  }

  /** Watches a directory and all below, or the file that a link leads to. Anything else is its directory's to tell of. */
  #watchTree(path: string, above: readonly string[] = []): void {
    const stats = statsOf(path);
    if (stats === undefined || this.#watched.has(path)) return;
    const identity = identityOf(stats);
    if (!stats.isDirectory()) {
      if (stats.isFile() && isLink(path)) this.#watch(path, identity, (event) => this.#linkedFileHappened(path, event));
      return;
    }
    // A link to a directory above would be followed for ever.
    if (above.includes(identity)) return;
    this.#watch(path, identity, (event, name) => this.#happened(path, event, name));
    try {
      for (const entry of readdirSync(path, { withFileTypes: true })) {
        if (entry.isDirectory() || entry.isSymbolicLink())
          this.#watchTree(join(path, entry.name), [...above, identity]);
      }
    } catch (error) {
      // Gone again: its own directory tells. Not readable: whoever reads it says so.
      if (!isSystemError(error, 'ENOENT') && !isSystemError(error, 'EACCES')) this.#fail(error);
    }
  }

  #watch(path: string, identity: string, happened: (event: string, name: string | null) => void): void {
    try {
      const watcher = watch(path, (event, name) => happened(event, name));
      watcher.on('error', () => {
        this.#unwatch(path);
        this.#report(dirname(path));
      });
      this.#watched.set(path, { watcher, identity });
    } catch (error) {
      if (!isSystemError(error, 'ENOENT') && !isSystemError(error, 'EACCES')) this.#fail(error);
    }
  }

  #linkedFileHappened(path: string, event: string): void {
    if (event === 'rename') {
      this.#unwatch(path);
      this.#watchTree(path);
    }
    this.#report(path);
  }

  #unwatch(path: string): void {
    this.#watched.get(path)?.watcher.close();
    this.#watched.delete(path);
  }

  #unwatchTree(path: string): void {
    for (const known of [...this.#watched.keys()])
      if (known === path || known.startsWith(`${path}/`)) this.#unwatch(known);
  }

  /** The root was made, removed or replaced, or a link on the way to it was switched. */
  #renewRoot(): void {
    if (this.#isClosed) return;
    this.#watchAbove();
    this.#unwatchTree(this.#root);
    this.#watchTree(this.#root);
    this.#report(this.#root);
  }

  /** Watches the nearest directory above that exists, for what comes and goes on the way to the root. */
  #watchAbove(): void {
    let directory = dirname(this.#root);
    while (statsOf(directory) === undefined && dirname(directory) !== directory) directory = dirname(directory);
    const stats = statsOf(directory);
    const place = stats === undefined ? '' : `${directory} ${identityOf(stats)}`;
    if (place === this.#aboveWatches) return;
    this.#above?.close();
    this.#above = undefined;
    this.#aboveWatches = place;
    if (stats === undefined) return;
    try {
      const onTheWay = this.#root.slice(directory.length).split('/').find(Boolean);
      this.#above = watch(directory, (event, name) => {
        if (event !== 'rename') return;
        if (name === null || name === onTheWay || name === basename(directory)) this.#renewRoot();
      });
      this.#above.on('error', () => this.#renewRoot());
    } catch (error) {
      if (!isSystemError(error, 'ENOENT') && !isSystemError(error, 'EACCES')) this.#fail(error);
    }
    // What came up between the look and the watch.
    if (statsOf(this.#root) !== undefined && directory !== dirname(this.#root)) this.#watchAbove();
  }
}

/** Of what a path leads to; undefined when it leads to nothing that can be seen. */
function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

function identityOf({ dev, ino }: Stats): string {
  return `${dev}:${ino}`;
}
