import { basename, dirname, resolve } from 'node:path';
import { watch } from 'chokidar';
import { onDirectoryCreated } from './missing-directory.ts';

export interface WatchHandlers {
  /**
   * Also called once when the watch has started, for changes before that.
   * @param isBurst very many events arrived at once; only a watch of a directory tree reports it
   */
  readonly changed: (path: string, isBurst?: boolean) => void;
  readonly failed: (error: unknown) => void;
}

/** No handler is called after the watch is stopped. */
export type StopWatching = () => void;

/**
 * Watches a file. The file and its directory may be missing. A file behind symbolic links next to it, as Kubernetes mounts ConfigMaps (`mesh →
 * ..data/mesh`, `..data → ..2026_11_21`), changes when a link is switched.
 */
export function watchFile(file: string, handlers: WatchHandlers): StopWatching {
  const watchedFile = new WatchedFile(resolve(file), handlers);
  watchedFile.start();
  return () => watchedFile.stop();
}

class WatchedFile {
  readonly #path: string;
  readonly #directory: string;
  readonly #handlers: WatchHandlers;
  #stop: StopWatching = () => {};
  #isStopped = false;

  constructor(path: string, handlers: WatchHandlers) {
    this.#path = path;
    this.#directory = dirname(path);
    this.#handlers = handlers;
  }

  /**
   * Waits while the directory is missing, because chokidar would list all entries of the parent directory at each event
   * in it.
   */
  start(): void {
    let directoryExists = false;
    const stop = onDirectoryCreated(this.#directory, {
      appeared: () => {
        directoryExists = true;
        this.#watch();
      },
      failed: (error) => this.#reportFailure(error),
    });
    if (directoryExists) return;
    this.#stop = stop;
    // Asynchronous, because the caller has not received its stop function yet.
    setImmediate(() => this.#onChange(this.#path));
  }

  stop(): void {
    this.#isStopped = true;
    this.#stop();
  }

  #onChange(path: string): void {
    if (!this.#isStopped) this.#handlers.changed(path);
  }

  #reportFailure(error: unknown): void {
    if (!this.#isStopped) this.#handlers.failed(error);
  }

  /** A watch of the file does not report the switch of a link. Directories above are never ignored. */
  #watch(): void {
    const [path, directory] = [this.#path, this.#directory];
    const isIgnored = (eventPath: string): boolean =>
      eventPath !== directory && eventPath !== path && !isReachedThroughLink(directory, eventPath);
    const watcher = watch(directory, { ignoreInitial: true, atomic: false, ignored: isIgnored });
    this.#stop = () => {
      watcher.removeAllListeners().on('error', () => {});
      void watcher.close();
    };
    watcher.on('all', (event, changedPath) => {
      this.#onChange(changedPath);
      if (event !== 'unlinkDir' || changedPath !== directory || this.#isStopped) return;
      this.#stop();
      this.start();
    });
    watcher.on('ready', () => this.#onChange(directory));
    watcher.on('error', (error) => this.#reportFailure(error));
  }
}

function isReachedThroughLink(directory: string, path: string): boolean {
  for (let current = path; current.length > directory.length; current = dirname(current)) {
    if (dirname(current) === directory) return basename(current).startsWith('..');
  }
  return false;
}
