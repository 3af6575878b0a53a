/**
 * Where lines leave the program: standard output and error, or a file. A write takes what there is room for and never
 * waits for a reader.
 *
 * Node's own streams will not do. They make a pipe non-blocking for everybody who shares it; the spawn of a child that
 * inherits the pipe makes it blocking again, and from then on a full pipe stops the whole event loop. A pipe that is opened
 * anew by its name in /proc is non-blocking for this program alone, and it costs one system call at the start: no thread, no
 * stream. Regular files are written at once: what the system takes stays whole whatever becomes of the program.
 */
import { closeSync, constants, fchmodSync, fstatSync, openSync, type Stats, statSync, writeSync } from 'node:fs';
import { isSystemError, messageOf } from '../errors.ts';

export interface Outlet {
  /** Which file it is; empty for what is none. A line that was cut cannot be ended in another file. */
  readonly id: string;
  /** Whether it is a file in which nothing was when it was opened. Its number may be that of one that is gone. */
  readonly isEmpty: boolean;
  /** Longest write: a pipe takes so much whole, and nobody else's text gets between. */
  readonly maxWriteBytes: number;
  /**
   * Writes as much as there is room for.
   *
   * @returns bytes taken; 0: no room now
   * @throws what the system says: no space, no reader, …
   */
  write(bytes: Buffer): number;
  /** Whether its name means another file by now, or none: somebody moved it away, or made it empty. */
  moved(): boolean;
  close(): void;
}

/** POSIX promises 512 bytes, Linux a page (pipe(7), PIPE_BUF). */
const pipeWriteBytes = 4_096;
const fileWriteBytes = 256 * 1024;

const { O_APPEND, O_CREAT, O_NOCTTY, O_NONBLOCK, O_WRONLY } = constants;

let nodeOutput = (): NodeJS.WriteStream => process.stdout;

/**
 * Keeps standard output for what this program prints itself: what a module of the user writes to `process.stdout` or prints with
 * `console.log` goes to standard error from now on.
 */
export function reserveStandardOutput(): void {
  const read = Object.getOwnPropertyDescriptor(process, 'stdout')?.get;
  if (read === undefined) return;
  nodeOutput = () => read.call(process) as NodeJS.WriteStream;
  Object.defineProperty(process, 'stdout', { configurable: true, enumerable: true, get: () => process.stderr });
}

/** Standard output (1) or error (2), whatever it is: a pipe, a terminal, a file, a socket. @throws when nobody reads it */
export function openStandardStream(fd: 1 | 2): Outlet {
  const stats = fstatSync(fd);
  // A file that was opened without O_APPEND has a place where the next byte goes, which belongs to this one descriptor.
  if (stats.isFile()) return new DescriptorOutlet(fd, stats);
  const own = stats.isSocket() ? undefined : reopened(fd);
  if (own !== undefined) return new DescriptorOutlet(own, stats, () => closeSync(own));
  // Sockets cannot be opened by a name, nor can a pipe that another user made. Node's stream makes them non-blocking when it
  // is made; no child inherits such an output (src/agent/envoy/output/output-channels.ts), so they stay that.
  (fd === 1 ? nodeOutput() : process.stderr).on('error', () => {});
  return new DescriptorOutlet(fd, stats);
}

/** @returns undefined where that cannot be done. @throws ENXIO: a pipe that nobody reads */
function reopened(fd: number): number | undefined {
  try {
    return openSync(`/proc/self/fd/${fd}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
  } catch (error) {
    if (isSystemError(error, 'ENXIO')) throw error;
    return undefined;
  }
}

/** Whether standard output is a file, which lets no writer wait. */
export function isStandardOutputFile(): boolean {
  return fstatSync(1).isFile();
}

/**
 * Appends to a file, which is made when it is missing; a named pipe is not waited for. A file of ours that is there already
 * loses the rights that the mode does not have.
 *
 * @throws what the system says
 */
export function openFile(path: string, mode = 0o666): Outlet {
  const fd = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY, mode);
  if (mode !== 0o666) restrict(fd, mode);
  return new DescriptorOutlet(fd, fstatSync(fd), () => closeSync(fd), path);
}

/** Pipes, devices and what others gave us (their file, our standard output) keep the rights that they were given. */
function restrict(fd: number, mode: number): void {
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

/** What becomes of itself, or by somebody's deed, is no mistake: a full disk, a pipe that nobody reads yet. */
const mistakes = ['ENOENT', 'ENOTDIR', 'EISDIR', 'EACCES', 'EPERM', 'EROFS', 'ELOOP', 'ENAMETOOLONG', 'ETXTBSY'];

/** Why this path was a mistake of whoever named it; undefined when it can be written, or may be one day. */
export function mistakeInPath(path: string, mode?: number): string | undefined {
  try {
    openFile(path, mode).close();
    return undefined;
  } catch (error) {
    return mistakes.some((code) => isSystemError(error, code)) ? messageOf(error) : undefined;
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
  #hasWritten = false;

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
      const taken = writeSync(this.#fd, bytes);
      this.#hasWritten = true;
      return taken;
    } catch (error) {
      if (isSystemError(error, 'EAGAIN')) return 0;
      throw error;
    }
  }

  moved(): boolean {
    if (!this.#isFile || this.#path === undefined) return false;
    try {
      const stats = statSync(this.#path);
      return idOf(stats) !== this.id || (stats.size === 0 && this.#hasWritten);
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
