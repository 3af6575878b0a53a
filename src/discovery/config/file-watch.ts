/** Tells that something happened to a file. What it was is for the reader to find out. */
import { basename, dirname, resolve } from 'node:path';
import { watch } from 'chokidar';

export interface WatchHandlers {
  /** Something happened at this path. Also called once when the watch has begun: what happened before it counts. */
  readonly changed: (path: string) => void;
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
  const path = resolve(file);
  const directory = dirname(path);
  // The directory, not the file: only there the switch of a link is seen. Directories above it are never ignored.
  return start(
    directory,
    (other) => other !== directory && other !== path && !isBehindLink(directory, other),
    handlers,
  );
}

/** `..data` and the like directly in the directory, and what is in them. */
function isBehindLink(directory: string, path: string): boolean {
  for (let at = path; at.length > directory.length; at = dirname(at)) {
    if (dirname(at) === directory) return basename(at).startsWith('..');
  }
  return false;
}

function start(path: string, ignored: (path: string) => boolean, handlers: WatchHandlers): StopWatching {
  const watcher = watch(path, { ignoreInitial: true, atomic: false, ignored });
  let stopped = false;
  const changed = (where: string): void => {
    if (!stopped) handlers.changed(where);
  };
  watcher.on('all', (_, where) => changed(where));
  watcher.on('ready', () => changed(path));
  watcher.on('error', (error) => {
    if (!stopped) handlers.failed(error);
  });
  return () => {
    stopped = true;
    // Closing is asynchronous; nobody waits for it, and nothing is reported meanwhile.
    void watcher.close();
  };
}
