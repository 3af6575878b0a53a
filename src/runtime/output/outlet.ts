/**
 * Standard output and error, or a file. A write accepts as many bytes as fit and never waits for a reader.
 *
 * Node's own streams are not sufficient. They set a pipe to non-blocking for all processes that share it; the spawn of a child that inherits the pipe
 * sets it to blocking again, and from then on a full pipe stops the entire event loop. A pipe that is reopened by its name in /proc is non-blocking
 * for this program alone.
 */
import { closeSync, constants, fchmodSync, fstatSync, openSync, type Stats, statSync, writeSync } from 'node:fs';
import { isSystemError, messageOf } from '../errors.ts';

export interface Outlet {
  /** Identity of the file; empty for other outputs. The rest of an interrupted line is not written to another file. */
  readonly id: string;
  /** Whether a file was empty when it was opened. Its inode number may be that of a removed file. */
  readonly isEmpty: boolean;
  /** Maximum bytes of a write, which a pipe accepts atomically, without text of other writers in between. */
  readonly maxWriteBytes: number;
  /**
   * @returns bytes accepted; 0 if the output is full
   * @throws the system's error
   */
  write(bytes: Buffer): number;
  /** Whether the name of the file refers to another file or none, or the file was truncated. */
  isMoved(): boolean;
  close(): void;
}

/** POSIX promises 512 bytes, Linux a page (pipe(7), PIPE_BUF). */
const pipeWriteBytes = 4_096;
const fileWriteBytes = 256 * 1024;

const { O_APPEND, O_CREAT, O_NOCTTY, O_NONBLOCK, O_WRONLY } = constants;

let nodeOutput = (): NodeJS.WriteStream => process.stdout;

/** Text that a user's module writes to `process.stdout` or with `console.log` goes to standard error. */
export function reserveStandardOutput(): void {
  const read = Object.getOwnPropertyDescriptor(process, 'stdout')?.get;
  if (read === undefined) return;
  nodeOutput = () => read.call(process) as NodeJS.WriteStream;
  Object.defineProperty(process, 'stdout', { configurable: true, enumerable: true, get: () => process.stderr });
}

/**
 * Standard output (1) or error (2): a pipe, a terminal, a file, or a socket.
 *
 * @throws if it has no reader
 */
export function openStandardStream(fd: 1 | 2): Outlet {
  const stats = fstatSync(fd);
  // A file that was opened without O_APPEND has its write position in this descriptor.
  if (stats.isFile()) return new DescriptorOutlet(fd, stats);
  const reopenedFd = stats.isSocket() ? undefined : reopenNonBlocking(fd);
  if (reopenedFd !== undefined) return new DescriptorOutlet(reopenedFd, stats, () => closeSync(reopenedFd));
  // Sockets cannot be opened by a name, nor can a pipe of another user. Node's stream sets them to non-blocking when it is created.
  (fd === 1 ? nodeOutput() : process.stderr).on('error', () => {});
  return new DescriptorOutlet(fd, stats);
}

/** @throws ENXIO for a pipe without a reader */
function reopenNonBlocking(fd: number): number | undefined {
  try {
    return openSync(`/proc/self/fd/${fd}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
  } catch (error) {
    if (isSystemError(error, 'ENXIO')) throw error;
    return undefined;
  }
}

export function isStandardOutputFile(): boolean {
  return fstatSync(1).isFile();
}

/**
 * Creates a missing file, and never waits for the reader of a named pipe.
 * @throws the system's error
 */
export function openFile(path: string, mode = 0o666): Outlet {
  const fd = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY, mode);
  if (mode !== 0o666) restrictPermissions(fd, mode);
  return new DescriptorOutlet(fd, fstatSync(fd), () => closeSync(fd), path);
}

/**
 * Pipes, devices and files that are not exclusive to this program (another user’s file, its standard output) keep their
 * permissions.
 */
function restrictPermissions(fd: number, mode: number): void {
  const stats = fstatSync(fd);
  if (!stats.isFile() || stats.uid !== process.geteuid?.() || (stats.mode & 0o777 & ~mode) === 0) return;
  if ([1, 2].some((standard) => idOf(fstatSync(standard)) === idOf(stats))) return;
  try {
    fchmodSync(fd, stats.mode & mode);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** Errors with other codes may be temporary: a full disk, a pipe without a reader yet. */
const pathErrorCodes = ['ENOENT', 'ENOTDIR', 'EISDIR', 'EACCES', 'EPERM', 'EROFS', 'ELOOP', 'ENAMETOOLONG', 'ETXTBSY'];

/** Why this path can never be written; `undefined` if it can be, or may be later. */
export function pathErrorIn(path: string, mode?: number): string | undefined {
  try {
    openFile(path, mode).close();
    return undefined;
  } catch (error) {
    return pathErrorCodes.some((code) => isSystemError(error, code)) ? messageOf(error) : undefined;
  }
}

class DescriptorOutlet implements Outlet {
  readonly id: string;
  readonly isEmpty: boolean;
  readonly maxWriteBytes: number;
  readonly #fd: number;
  readonly #isFile: boolean;
  readonly #close: () => void;
  readonly #path: string | undefined;
  #hasWrittenBytes = false;

  constructor(fd: number, stats: Stats, close: () => void = () => {}, path?: string) {
    this.#fd = fd;
    this.#isFile = stats.isFile();
    this.#close = close;
    this.#path = path;
    this.id = this.#isFile ? idOf(stats) : '';
    this.isEmpty = this.#isFile && stats.size === 0;
    this.maxWriteBytes = this.#isFile ? fileWriteBytes : pipeWriteBytes;
  }

  write(bytes: Buffer): number {
    try {
      const writtenBytes = writeSync(this.#fd, bytes);
      this.#hasWrittenBytes = true;
      return writtenBytes;
    } catch (error) {
      if (isSystemError(error, 'EAGAIN')) return 0;
      throw error;
    }
  }

  isMoved(): boolean {
    if (!this.#isFile || this.#path === undefined) return false;
    try {
      const stats = statSync(this.#path);
      return idOf(stats) !== this.id || (stats.size === 0 && this.#hasWrittenBytes);
    } catch {
      return true;
    }
  }

  close(): void {
    this.#close();
  }
}

function idOf({ dev, ino }: Stats): string {
  return `${dev}:${ino}`;
}
