/** Waits for a directory that is missing, at the cost of nothing for whatever else happens where it would come up. */
import { type FSWatcher, statSync, watch } from 'node:fs';
import { basename, dirname, relative, sep } from 'node:path';
import { isSystemError } from '../errors.ts';

/** What no watch tells is seen after so long: a link above that is switched, a directory that nobody may watch. */
const inspectionMs = 60_000;

export interface ComingHandlers {
  /** The directory is there; called once, and at once where it is there already. */
  readonly come: () => void;
  /** The directory cannot be watched for; it is looked for all the same, each minute. */
  readonly failed: (error: unknown) => void;
}

/** @returns stops waiting; no handler is called afterwards */
export function whenDirectoryComes(directory: string, handlers: ComingHandlers): () => void {
  const coming = new Coming(directory, handlers);
  coming.look();
  return () => coming.end();
}

/** Watches the nearest directory above that exists for what comes up on the way. */
class Coming {
  readonly #directory: string;
  readonly #handlers: ComingHandlers;
  readonly #inspection = setInterval(() => this.look(), inspectionMs).unref();
  #above: { readonly watcher: FSWatcher; readonly path: string } | undefined;
  #hasFailed = false;
  #isOver = false;

  constructor(directory: string, handlers: ComingHandlers) {
    this.#directory = directory;
    this.#handlers = handlers;
  }

  look(): void {
    if (this.#isOver) return;
    if (isDirectory(this.#directory)) {
      this.end();
      this.#handlers.come();
      return;
    }
    const above = nearestAbove(this.#directory);
    if (above === this.#above?.path) return;
    this.#watch(above);
    // What came up between the look and the watch.
    if (nearestAbove(this.#directory) !== above || isDirectory(this.#directory)) this.look();
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
        // A file that is written there, as often as anybody likes, is none of ours.
        if (event !== 'rename') return;
        if (name === basename(path)) this.#unwatch();
        if (name === null || name === onTheWay || name === basename(path)) this.look();
      });
      watcher.on('error', (error) => this.#fail(error));
      this.#above = { watcher, path };
    } catch (error) {
      // The directory is gone again: the one above is looked at next.
      if (!isSystemError(error, 'ENOENT')) this.#fail(error);
    }
  }

  #unwatch(): void {
    this.#above?.watcher.close();
    this.#above = undefined;
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
    // Nobody may look.
    return false;
  }
}
