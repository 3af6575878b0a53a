/**
 * Outputs of a child process that it can also open by name, for access logs to `/dev/stdout`. Node's pipes are sockets, which Linux refuses to open
 * (ENXIO): Envoy would reject the listener.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { isSystemError } from '../../../runtime/errors.ts';
import { isStandardOutputFile } from '../../../runtime/output/outlet.ts';
import { type ScratchParent, withScratchFolder } from '../scratch-folder.ts';

/** File descriptor that the child inherits. execa accepts any, but its types list only these. */
export type FileDescriptor = 3 | 4 | 5 | 6 | 7 | 8 | 9;

export interface OutputChannel {
  readonly childEnd: FileDescriptor | 'pipe' | 'inherit';
  /** `undefined` with `pipe`, where the child object has the stream, and with `inherit`. */
  readonly stream: Readable | undefined;
}

export interface OutputChannels {
  readonly stdout: OutputChannel;
  readonly stderr: OutputChannel;
  /** Closes the agent's copies of the child's ends, so that the streams end with the child. */
  release(): void;
}

/**
 * Standard output is inherited if it is a file, which accepts data immediately. Otherwise its reader may be slow: an Envoy that writes to a full pipe
 * buffers without limit and cannot exit (measured with 1.40). So stdout and stderr are named pipes. On hosts without `mkfifo`, stdout is inherited if
 * the child can open it, and Node's pipes are used otherwise.
 * @throws ChartpilotError FILE_UNWRITABLE if none of the folders is usable
 */
export function openOutputChannels(
  scratch: readonly ScratchParent[],
  isOutputFile = isStandardOutputFile(),
): OutputChannels {
  const inheritedChannel = isOutputFile ? inheritedOutput : undefined;
  const pipes = namedPipes(scratch, inheritedChannel === undefined ? 2 : 1);
  return {
    stderr: pipes[0] ?? nodePipe,
    stdout: inheritedChannel ?? pipes[1] ?? (canOpenForWriting('/dev/stdout') ? inheritedOutput : nodePipe),
    release: () => release(pipes),
  };
}

/** Like {@link openOutputChannels}, for the stderr of a child with no other output. */
export function openErrorChannel(scratch: readonly ScratchParent[]): OutputChannel & { release(): void } {
  const pipes = namedPipes(scratch, 1);
  return { ...(pipes[0] ?? nodePipe), release: () => release(pipes) };
}

export interface DetachedChannels {
  /** `readEnd` is undefined if the agent's standard output is a file. */
  readonly stdout: OutputChannel & { readonly readEnd: number | undefined };
  readonly stderr: NamedPipe;
  readonly life: NamedPipe;
  release(): void;
}

/**
 * `undefined` on hosts without `mkfifo`, because the next agent cannot open Node's pipes.
 *
 * @throws ChartpilotError FILE_UNWRITABLE if none of the folders is usable
 */
export function openDetachedChannels(
  scratch: readonly ScratchParent[],
  isOutputFile = isStandardOutputFile(),
): DetachedChannels | undefined {
  const pipes = namedPipes(scratch, isOutputFile ? 2 : 3);
  const [stderr, livenessPipe, stdout] = pipes;
  if (stderr === undefined || livenessPipe === undefined) return undefined;
  return {
    stdout: stdout ?? { ...inheritedOutput, readEnd: undefined },
    stderr,
    life: livenessPipe,
    release: () => release(pipes),
  };
}

const inheritedOutput: OutputChannel = { childEnd: 'inherit', stream: undefined };
const nodePipe: OutputChannel = { childEnd: 'pipe', stream: undefined };

function release(pipes: readonly NamedPipe[]): void {
  for (const { childEnd } of pipes) closeSync(childEnd);
}

function canOpenForWriting(path: string): boolean {
  try {
    closeSync(openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK));
    return true;
  } catch {
    return false;
  }
}

export interface NamedPipe extends OutputChannel {
  readonly childEnd: FileDescriptor;
  readonly stream: Readable;
  readonly readEnd: FileDescriptor;
}

/** The names are removed before other processes can open the pipes. */
function namedPipes(scratch: readonly ScratchParent[], count: number): NamedPipe[] {
  return withScratchFolder(scratch, (folder) => {
    const paths = Array.from({ length: count }, (_, index) => join(folder, String(index)));
    const { error, status, stderr } = spawnSync('mkfifo', ['-m', '600', ...paths], { encoding: 'utf8' });
    if (error !== undefined && isSystemError(error, 'ENOENT')) return [];
    // Some file systems do not support FIFOs: try the next folder.
    if (status !== 0) throw error ?? new Error(stderr.trim() || `mkfifo: exit code ${status}`);
    return openAll(paths);
  });
}

function openAll(paths: readonly string[]): NamedPipe[] {
  const pipes: NamedPipe[] = [];
  try {
    for (const path of paths) pipes.push(openPipe(path));
    return pipes;
  } catch (error) {
    for (const { stream } of pipes) stream.destroy();
    release(pipes);
    throw error;
  }
}

function openPipe(path: string): NamedPipe {
  // The read end first: opening it does not wait for a writer, and opening the write end needs a reader.
  const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK) as FileDescriptor;
  try {
    const childEnd = openSync(path, constants.O_WRONLY) as FileDescriptor;
    return { childEnd, readEnd, stream: new Socket({ fd: readEnd, readable: true, writable: false }) };
  } catch (error) {
    closeSync(readEnd);
    throw error;
  }
}
