/** Waits for a missing directory, without cost for other changes in its parent directory. */
import { type FSWatcher, statSync, watch } from 'node:fs';
import { basename, dirname, relative, sep } from 'node:path';
import { isSystemError } from '../errors.ts';

/** Polling interval: inotify reports neither a switched link above the directory nor changes of a directory that may not be watched. */
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
  return () => missingDirectory.stop();
}

class MissingDirectory {
  readonly #directory: string;
  readonly #handlers: DirectoryHandlers;
  readonly #inspection = setInterval(() => this.check(), inspectionMs).unref();
  #ancestorWatch: { readonly watcher: FSWatcher; readonly path: string } | undefined;
  #hasReportedFailure = false;
  #isStopped = false;

  constructor(directory: string, handlers: DirectoryHandlers) {
    this.#directory = directory;
    this.#handlers = handlers;
  }

  check(): void {
    if (this.#isStopped) return;
    if (isDirectory(this.#directory)) {
      this.stop();
      this.#handlers.appeared();
      return;
    }
    const nearestAncestor = nearestExistingAncestor(this.#directory);
    if (nearestAncestor === this.#ancestorWatch?.path) return;
    this.#watch(nearestAncestor);
    // A directory may have been created between the check and the watch.
    if (nearestExistingAncestor(this.#directory) !== nearestAncestor || isDirectory(this.#directory)) this.check();
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#inspection);
    this.#closeAncestorWatch();
  }

  #watch(path: string): void {
    this.#closeAncestorWatch();
    const nextPathPart = relative(path, this.#directory).split(sep)[0];
    try {
      const watcher = watch(path, (event, name) => {
        // Ignores writes to files, however frequent.
        if (event !== 'rename') return;
        if (name === basename(path)) this.#closeAncestorWatch();
        if (name === null || name === nextPathPart || name === basename(path)) this.check();
      });
      watcher.on('error', (error) => this.#fail(error));
      this.#ancestorWatch = { watcher, path };
    } catch (error) {
      // The directory was removed again, so the one above it is checked next.
      if (!isSystemError(error, 'ENOENT')) this.#fail(error);
    }
  }

  #closeAncestorWatch(): void {
    this.#ancestorWatch?.watcher.close();
    this.#ancestorWatch = undefined;
  }

  #fail(error: unknown): void {
    this.#closeAncestorWatch();
    if (!this.#isStopped && !this.#hasReportedFailure) this.#handlers.failed(error);
    this.#hasReportedFailure = true;
  }
}

function nearestExistingAncestor(directory: string): string {
  let ancestor = dirname(directory);
  while (!isDirectory(ancestor) && dirname(ancestor) !== ancestor) ancestor = dirname(ancestor);
  return ancestor;
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return false;
  }
}
