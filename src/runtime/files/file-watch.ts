/** Tells that something happened to a file. What it was is for the reader to find out. */
import { basename, dirname, resolve } from 'node:path';
import { watch } from 'chokidar';
import { whenDirectoryComes } from './directory-coming.ts';

export interface WatchHandlers {
  /**
   * Something happened at this path. Also called once when the watch has begun: what happened before it counts.
   *
   * @param isBurst very many events come at once; only a watch of a directory tree reports it
   */
  readonly changed: (path: string, isBurst?: boolean) => void;
  readonly failed: (error: unknown) => void;
}

/** Stops a watch; no handler is called afterwards. */
export type StopWatching = () => void;

/**
 * Watches one file. It and its directory may be missing, come and go. A file that is reached through symbolic links next
 * to it, as Kubernetes mounts ConfigMaps (`mesh → ..data/mesh`, `..data → ..2026_11_21`), is seen to change when a link
 * is switched.
 */
export function watchFile(file: string, handlers: WatchHandlers): StopWatching {
  const watched = new WatchedFile(resolve(file), handlers);
  watched.begin();
  return () => watched.stop();
}

class WatchedFile {
  readonly #path: string;
  readonly #directory: string;
  readonly #handlers: WatchHandlers;
  /** Ends what is going on: waiting for the directory, or watching it. */
  #stop: StopWatching = () => {};
  #isStopped = false;

  constructor(path: string, handlers: WatchHandlers) {
    this.#path = path;
    this.#directory = dirname(path);
    this.#handlers = handlers;
  }

  /** While the directory is missing: chokidar would list all that is where it should come up, with each event there. */
  begin(): void {
    let isThere = false;
    const stop = whenDirectoryComes(this.#directory, {
      come: () => {
        isThere = true;
        this.#watch();
      },
      failed: (error) => this.#failed(error),
    });
    if (isThere) return;
    this.#stop = stop;
    // Later, as of a directory that is there: whoever watches has not been answered yet.
    setImmediate(() => this.#changed(this.#path));
  }

  stop(): void {
    this.#isStopped = true;
    this.#stop();
  }

  #changed(path: string): void {
    if (!this.#isStopped) this.#handlers.changed(path);
  }

  #failed(error: unknown): void {
    if (!this.#isStopped) this.#handlers.failed(error);
  }

  /** The directory, not the file: only there the switch of a link is seen. Directories above it are never ignored. */
  #watch(): void {
    const [path, directory] = [this.#path, this.#directory];
    const ignored = (other: string): boolean =>
      other !== directory && other !== path && !isBehindLink(directory, other);
    const watcher = watch(directory, { ignoreInitial: true, atomic: false, ignored });
    this.#stop = () => {
      // Closing is asynchronous; nobody waits for it.
      watcher.removeAllListeners().on('error', () => {});
      void watcher.close();
    };
    watcher.on('all', (event, where) => {
      this.#changed(where);
      if (event !== 'unlinkDir' || where !== directory || this.#isStopped) return;
      this.#stop();
      this.begin();
    });
    watcher.on('ready', () => this.#changed(directory));
    watcher.on('error', (error) => this.#failed(error));
  }
}

/** `..data` and the like directly in the directory, and what is in them. */
function isBehindLink(directory: string, path: string): boolean {
  for (let at = path; at.length > directory.length; at = dirname(at)) {
    if (dirname(at) === directory) return basename(at).startsWith('..');
  }
  return false;
}
