/**
 * Tells where in a directory something happened: one watch for each directory of the tree, none for its files, so that
 * thousands of files cost nothing until one changes, and every event comes at once with the path that it is about.
 */
import { type Dir, type FSWatcher, lstatSync, opendirSync, type Stats, statSync, watch } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isSystemError } from '../../../runtime/errors.ts';
import { letEscape } from '../../../runtime/fences/uncaught.ts';
import { isOfTheKernel } from '../../../runtime/files/bounded-file.ts';
import type { StopWatching, WatchHandlers } from '../../../runtime/files/file-watch.ts';
import type { Steps } from '../../../runtime/turns.ts';
import { deepestDirectory, defaultConfigLimits } from './config-limits.ts';

/** An operating system may drop events when very many come at once: everything is looked at this often, whatever it said. */
const inspectionMs = 60_000;

/** The kernel's are not without end either, and others watch as well: what is not watched is inspected. */
const mostWatches = 8_192;

/** So many names are asked of the file system at once. */
const entriesAtOnce = 256;

/** After so long others have their turn. */
const turnMs = 10;

/** So many events within {@link burstMs} are a burst. Saving a file, or a few, causes fewer. */
const burstEvents = 16;
const burstMs = 100;

/** Places that are told by themselves in one turn; beyond that the directory is told, and all of it is looked at. */
const mostPlaces = 256;

/**
 * Watches a directory and all below it, hidden or reached through links too. It may be missing, come, go and come again.
 * What happens from the return of this call on is told: where there is more than can be watched at once, the directory is
 * told again when it is. Of a tree that is too large as much is watched as may be.
 * The path is a file's when a file was written, came or went; it is a directory's where anything below may have changed.
 *
 * @param inspecting called each minute, before the directory is told whatever happened in it
 */
export function watchDirectory(
  directory: string,
  handlers: WatchHandlers,
  { maxEntries } = defaultConfigLimits,
  inspecting: () => void = () => {},
): StopWatching {
  const tree = new TreeWatch(resolve(directory), handlers, maxEntries, inspecting);
  tree.open();
  return () => tree.close();
}

interface Watched {
  readonly watcher: FSWatcher;
  /** Which directory or file it is, whatever its name is now. */
  readonly identity: string;
  /** How many names were seen in the directory. */
  names: number;
}

/** What is to be watched. */
interface Place {
  readonly path: string;
  /** Which directories are above it, as far as they were just looked at. */
  readonly above: readonly string[];
}

class TreeWatch {
  readonly #root: string;
  readonly #handlers: WatchHandlers;
  readonly #maxEntries: number;
  readonly #inspecting: () => void;
  /** Directories of the tree, and files that links lead to. */
  readonly #watched = new Map<string, Watched>();
  /** Names in all directories that are watched. */
  #names = 0;
  #warnedOfTooMuch = false;
  /** Directories that are to be watched; what links lead to comes last. */
  #due: Place[] = [];
  #dueLinks: Place[] = [];
  #underWay: Steps<void> | undefined;
  /** The turn in which watching goes on. */
  #next: NodeJS.Immediate | undefined;
  /** Others have had their turn since what is due was asked for. */
  #isResumed = false;
  /** Something is watched later than when it was asked for: what happened meanwhile was not seen. */
  #isLate = false;
  /** Where something happened in this turn. */
  readonly #places = new Set<string>();
  readonly #renamed = new Set<string>();
  #reporting: NodeJS.Immediate | undefined;
  /** Events since the start of the current period of {@link burstMs}. */
  #recent = { since: Number.NEGATIVE_INFINITY, events: 0 };
  /** The directory that the root, or the nearest above it that is missing, would come up in. */
  #above: FSWatcher | undefined;
  #aboveWatches = '';
  #inspection: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(root: string, handlers: WatchHandlers, maxEntries: number, inspecting: () => void) {
    this.#root = root;
    this.#handlers = handlers;
    this.#maxEntries = maxEntries;
    this.#inspecting = inspecting;
  }

  open(): void {
    this.#watchAbove();
    this.#watchTree(this.#root);
    this.#inspection = setInterval(() => this.#inspect(), inspectionMs).unref();
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#inspection);
    clearImmediate(this.#next);
    clearImmediate(this.#reporting);
    this.#underWay?.return();
    this.#above?.close();
    for (const { watcher } of this.#watched.values()) watcher.close();
    this.#watched.clear();
  }

  #report(path: string, isBurst = false): void {
    if (!this.#isClosed) this.#handlers.changed(path, isBurst);
  }

  /** @returns whether these and other recent events are a burst */
  #countEvents(events: number): boolean {
    const now = performance.now();
    if (now - this.#recent.since > burstMs) this.#recent = { since: now, events: 0 };
    this.#recent.events += events;
    return this.#recent.events >= burstEvents;
  }

  #fail(error: unknown): void {
    if (!this.#isClosed) this.#handlers.failed(error);
  }

  /** What changes in the rest is seen when it is inspected. */
  #failOfTooMuch(what: string): void {
    if (!this.#warnedOfTooMuch)
      this.#fail(
        new Error(
          `${this.#root} has ${what}, the limit of file watches: changes of the rest are detected within a minute`,
        ),
      );
    this.#warnedOfTooMuch = true;
  }

  #inspect(): void {
    this.#inspecting();
    if (this.#isStill(this.#root)) this.#report(this.#root);
    else this.#renewRoot();
  }

  #happened(directory: string, event: string, name: string | null): void {
    const path = name === null ? directory : join(directory, name);
    // Something was made, removed or renamed. A number of an inode says nothing: it is given again.
    if (event === 'rename') this.#renamed.add(path);
    // A directory that is itself removed or renamed is told by its own name.
    if (name === null || name === basename(directory)) {
      this.#renamed.add(directory);
      this.#tell(directory);
    }
    this.#tell(path);
  }

  /** Of very many at once each is not told by itself. */
  #tell(path: string): void {
    if (this.#isClosed) return;
    if (this.#places.size <= mostPlaces) this.#places.add(path);
    this.#reporting ??= setImmediate(() => {
      this.#reporting = undefined;
      const [places, renamed] = [[...this.#places], [...this.#renamed]];
      this.#places.clear();
      this.#renamed.clear();
      if (renamed.includes(this.#root)) this.#renewRoot();
      else if (renamed.length > 0) this.#watchAgain(renamed);
      const isBurst = this.#countEvents(places.length);
      for (const place of places.length > mostPlaces ? [this.#root] : places) this.#report(place, isBurst);
    });
  }

  #isStill(path: string): boolean {
    const stats = statsOf(path);
    return stats !== undefined && identityOf(stats) === this.#watched.get(path)?.identity;
  }

  #watchAgain(paths: readonly string[]): void {
    for (const path of paths) {
      this.#unwatchTree(path);
      this.#due.push({ path, above: [] });
    }
    this.#goOn();
  }

  /** Watches a directory and all below, or the file that a link leads to. Anything else is its directory's to tell of. */
  #watchTree(path: string): void {
    this.#due.push({ path, above: [] });
    this.#goOn();
  }

  /** Watches what is due, until it is done or others must have their turn. */
  #goOn(): void {
    if (this.#isClosed || this.#next !== undefined) return;
    const until = performance.now() + turnMs;
    while (performance.now() < until) {
      if (this.#underWay === undefined) {
        const place = this.#due.pop() ?? this.#dueLinks.pop();
        if (place === undefined) {
          if (this.#isLate) this.#report(this.#root);
          this.#isLate = false;
          this.#isResumed = false;
          return;
        }
        this.#underWay = this.#watching(place);
      }
      try {
        if (this.#underWay.next().done) this.#underWay = undefined;
      } catch (error) {
        // What is left is watched all the same.
        this.#underWay = undefined;
        letEscape(error);
      }
    }
    this.#isResumed = true;
    this.#next = setImmediate(() => {
      this.#next = undefined;
      this.#goOn();
    });
  }

  *#watching({ path, above }: Place): Steps<void> {
    const stats = statsOf(path);
    if (stats === undefined || this.#watched.has(path)) return;
    const identity = identityOf(stats);
    if (!stats.isDirectory()) {
      if (stats.isFile() && isLink(path)) this.#watch(path, identity, (event) => this.#linkedFileHappened(path, event));
      return;
    }
    // A link to a directory above would be followed for ever.
    if (above.includes(identity) || above.length >= deepestDirectory) return;
    if (path !== this.#root && isKernels(path)) return;
    const watched = this.#watch(path, identity, (event, name) => this.#happened(path, event, name));
    if (watched === undefined) return;
    let directory: Dir | undefined;
    try {
      directory = opendirSync(path, { bufferSize: entriesAtOnce });
      for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
        if (this.#names >= this.#maxEntries) return this.#failOfTooMuch(`more than ${this.#maxEntries} entries`);
        this.#names++;
        watched.names++;
        const place = { path: join(path, entry.name), above: [...above, identity] };
        if (entry.isDirectory()) this.#due.push(place);
        else if (entry.isSymbolicLink()) this.#dueLinks.push(place);
        yield;
      }
    } catch (error) {
      // Gone again: its own directory tells. Not readable: whoever reads it says so.
      if (!isSystemError(error, 'ENOENT') && !isSystemError(error, 'EACCES')) this.#fail(error);
    } finally {
      directory?.closeSync();
    }
  }

  /** Answers undefined for what cannot be watched: nothing below it is, either. */
  #watch(path: string, identity: string, happened: (event: string, name: string | null) => void): Watched | undefined {
    if (this.#watched.size >= mostWatches) {
      this.#failOfTooMuch(`more than ${mostWatches} directories`);
      return undefined;
    }
    if (this.#isResumed) this.#isLate = true;
    try {
      const watcher = watch(path, (event, name) => happened(event, name));
      watcher.on('error', () => {
        this.#unwatchTree(path);
        this.#tell(dirname(path));
      });
      const watched: Watched = { watcher, identity, names: 0 };
      this.#watched.set(path, watched);
      return watched;
    } catch (error) {
      if (!isSystemError(error, 'ENOENT') && !isSystemError(error, 'EACCES')) this.#fail(error);
      return undefined;
    }
  }

  #linkedFileHappened(path: string, event: string): void {
    if (event === 'rename') this.#renamed.add(path);
    this.#tell(path);
  }

  #unwatch(path: string): void {
    const watched = this.#watched.get(path);
    watched?.watcher.close();
    this.#names -= watched?.names ?? 0;
    this.#watched.delete(path);
  }

  #unwatchTree(path: string): void {
    // What is below is not watched without it.
    if (!this.#watched.has(path)) return;
    for (const known of [...this.#watched.keys()])
      if (known === path || known.startsWith(`${path}/`)) this.#unwatch(known);
  }

  /** The root was made, removed or replaced, or a link on the way to it was switched. */
  #renewRoot(): void {
    if (this.#isClosed) return;
    this.#warnedOfTooMuch = false;
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

/** What a path leads to; undefined when that is nothing which can be seen. */
function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function isKernels(path: string): boolean {
  try {
    return isOfTheKernel(path);
  } catch {
    // Gone again, or nobody may look.
    return false;
  }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

function identityOf({ dev, ino }: Stats): string {
  return `${dev}:${ino}`;
}
