/**
 * The file-watch effect of the cert-watcher (spec/agent.md §3.2–3.4). Directories are watched, never files: Kubernetes
 * replaces files by renaming a symbolic link beside them, and a watch on a file dies with the file.
 */
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type FSWatcher, watch } from 'chokidar';
import { fromCallback } from 'xstate';
import type { FilesChanged } from '../../../machines/agent/protocol.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/log.ts';
import { certificateFile, kubernetesInternal } from './certificate-files.ts';

export interface WatchTimes {
  /** How often a directory is looked for: it may be missing, or be another one than before. */
  readonly identityMs: number;
  /** How often contents are compared, for changes that the kernel did not tell of. */
  readonly safetyMs: number;
  /** Pause after a watch that could not be set up; doubles up to the longest. */
  readonly retryMs: number;
  readonly longestRetryMs: number;
}

const defaultTimes: WatchTimes = { identityMs: 1_000, safetyMs: 60_000, retryMs: 500, longestRetryMs: 60_000 };

/** @param log is told of directories that cannot be watched: they are then compared from time to time. */
export function watchDirectories(log: Logger, times: Partial<WatchTimes> = {}) {
  return fromCallback<{ type: never }, { directories: string[] }>(({ input, sendBack }) => {
    const burst = new Burst((path) => {
      const event: FilesChanged = { type: 'files.changed', path };
      sendBack(event);
    });
    const changed = (path: string): void => burst.tell(path);
    const watches = [...new Set(input.directories)].map(
      (directory) => new DirectoryWatch(directory, changed, log, { ...defaultTimes, ...times }),
    );
    return () => {
      for (const each of watches) each.close();
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

/** Other programs may write other files beside the certificates, as often as they like. */
const concerns = (name: string): boolean => certificateFile.test(name) || kubernetesInternal.test(name);

/** Watches one path, whatever directory is at that path now. */
class DirectoryWatch {
  readonly #directory: string;
  readonly #changed: (path: string) => void;
  readonly #log: Logger;
  readonly #times: WatchTimes;
  #watcher: FSWatcher | undefined;
  /** Device and inode of the directory at the path; undefined when there is none, and before the first look. */
  #identity: string | undefined;
  #contents: string | undefined;
  #looked = false;
  #looking = false;
  #closed = false;
  #retryAt = 0;
  #retryMs: number;
  readonly #timers: NodeJS.Timeout[];

  constructor(directory: string, changed: (path: string) => void, log: Logger, times: WatchTimes) {
    this.#directory = directory;
    this.#changed = changed;
    this.#log = log;
    this.#times = times;
    this.#retryMs = times.retryMs;
    this.#timers = [
      setInterval(() => void this.#lookAndTell(), times.identityMs),
      setInterval(() => void this.#compare(), times.safetyMs),
    ];
    void this.#lookAndTell();
    void this.#compare();
  }

  async #lookAndTell(): Promise<void> {
    try {
      await this.#look();
    } catch (error) {
      this.#failed(error);
    }
  }

  close(): void {
    this.#closed = true;
    for (const timer of this.#timers) clearInterval(timer);
    this.#unwatch();
  }

  /** Sees to it that the directory which is at the path now is the one that is watched. */
  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    try {
      const identity = await identityOf(this.#directory);
      if (this.#closed) return;
      const other = identity !== this.#identity;
      if (other) this.#unwatch();
      this.#identity = identity;
      if (identity !== undefined && this.#watcher === undefined && performance.now() >= this.#retryAt) {
        await this.#watch();
      }
      // What is there at the first look is what the cert-watcher reads at its start.
      if (other && this.#looked && !this.#closed) this.#changed(this.#directory);
      this.#looked = true;
    } finally {
      this.#looking = false;
    }
  }

  async #watch(): Promise<void> {
    // chokidar would watch a link, not the directory that it leads to.
    const target = await realpath(this.#directory).catch(() => undefined);
    if (target === undefined || this.#closed) return;
    const watcher = watch(target, { ignoreInitial: true, depth: 0, followSymlinks: false, atomic: false });
    this.#watcher = watcher;
    watcher.on('all', (event, path) => {
      if (watcher !== this.#watcher || (event === 'addDir' && path === target)) return;
      if (path === target || concerns(basename(path))) this.#changed(path);
      // Its successor may get the same inode number, and would not be told from it.
      if (event === 'unlinkDir' && path === target) this.#lost();
    });
    watcher.on('error', (error) => {
      if (watcher === this.#watcher) this.#failed(error);
    });
    await new Promise<void>((resolve) => {
      watcher.once('ready', () => resolve());
      watcher.once('error', () => resolve());
    });
    if (watcher !== this.#watcher) return;
    this.#retryMs = this.#times.retryMs;
    // What changed before the watch was in place was told to nobody.
    await this.#compare();
  }

  /** The directory is gone, and the watch with it. */
  #lost(): void {
    this.#unwatch();
    this.#identity = undefined;
  }

  #failed(error: unknown): void {
    this.#log.warn(`${this.#directory} cannot be watched; it is looked at from time to time`, {
      reason: messageOf(error),
      retryMs: this.#retryMs,
    });
    this.#unwatch();
    this.#retryAt = performance.now() + this.#retryMs;
    this.#retryMs = Math.min(this.#times.longestRetryMs, this.#retryMs * 2);
  }

  #unwatch(): void {
    void this.#watcher?.close();
    this.#watcher = undefined;
  }

  async #compare(): Promise<void> {
    const contents = await contentsOf(this.#directory);
    const before = this.#contents;
    this.#contents = contents;
    if (before !== undefined && before !== contents && !this.#closed) this.#changed(this.#directory);
  }
}

async function identityOf(directory: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(directory, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

/** Changes whenever a file of the directory does, as far as that shows from outside. */
async function contentsOf(directory: string): Promise<string> {
  const names = (await readdir(directory).catch(() => [] as string[])).filter(concerns);
  const entries = await Promise.all(
    names.sort().map(async (name) => {
      const found = await stat(join(directory, name), { bigint: true }).catch(() => undefined);
      return found === undefined ? name : `${name} ${found.ino} ${found.size} ${found.mtimeNs}`;
    }),
  );
  return entries.join('\n');
}
