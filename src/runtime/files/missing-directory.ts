/** Waits for a missing directory, without cost for other changes in its parent directory. */
import { type FSWatcher, statSync, watch } from 'node:fs';
import { basename, dirname, relative, sep } from 'node:path';
import { isSystemError } from '../errors.ts';

/** inotify does not report a switched link above, or a directory that may not be watched. */
const inspectionMs = 60_000;

export interface DirectoryHandlers {
  /** Called once when the directory exists; synchronously if it exists already. */
  readonly appeared: () => void;
  /** No directory above can be watched; the path is still polled every minute. */
  readonly failed: (error: unknown) => void;
}

/** @returns a function that stops waiting; no handler is called afterwards */
export function onDirectoryCreated(directory: string, handlers: DirectoryHandlers): () => void {
  const missingDirectory = new MissingDirectory(directory, handlers);
  missingDirectory.check();
  return () => missingDirectory.end();
}

class MissingDirectory {
  readonly #directory: string;
  readonly #handlers: DirectoryHandlers;
  readonly #inspection = setInterval(() => this.check(), inspectionMs).unref();
  #ancestorWatch: { readonly watcher: FSWatcher; readonly path: string } | undefined;
  #hasFailed = false;
  #isOver = false;

  constructor(directory: string, handlers: DirectoryHandlers) {
    this.#directory = directory;
    this.#handlers = handlers;
  }

  check(): void {
    if (this.#isOver) return;
    if (isDirectory(this.#directory)) {
      this.end();
      this.#handlers.appeared();
      return;
    }
    const above = nearestAbove(this.#directory);
    if (above === this.#ancestorWatch?.path) return;
    this.#watch(above);
    // A directory may have been created between the check and the watch.
    if (nearestAbove(this.#directory) !== above || isDirectory(this.#directory)) this.check();
  }

  end(): void {
    this.#isOver = true;
    clearInterval(this.#inspection);
    this.#unwatch();
  }

  #watch(path: string): void {
    this.#unwatch();
    const onTheWay = relative(path, this.#directory).split(sep)[0];
    try {
      const watcher = watch(path, (event, name) => {
        // Ignores writes to files, however frequent.
        if (event !== 'rename') return;
        if (name === basename(path)) this.#unwatch();
        if (name === null || name === onTheWay || name === basename(path)) this.check();
      });
      watcher.on('error', (error) => this.#fail(error));
      this.#ancestorWatch = { watcher, path };
    } catch (error) {
      // The directory was removed again, so the one above it is checked next.
      if (!isSystemError(error, 'ENOENT')) this.#fail(error);
    }
  }

  #unwatch(): void {
    this.#ancestorWatch?.watcher.close();
    this.#ancestorWatch = undefined;
  }

  #fail(error: unknown): void {
    this.#unwatch();
    if (!this.#isOver && !this.#hasFailed) this.#handlers.failed(error);
    this.#hasFailed = true;
  }
}

function nearestAbove(directory: string): string {
  let above = dirname(directory);
  while (!isDirectory(above) && dirname(above) !== above) above = dirname(above);
  return above;
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return false;
  }
}
