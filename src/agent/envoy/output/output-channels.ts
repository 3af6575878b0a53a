/**
 * Outputs of a child process that the child can open again by name. Meshes write access logs to `/dev/stdout`; Node's own
 * pipes are sockets, which Linux refuses to open (ENXIO), so Envoy would reject every such listener.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { isSystemError } from '../../../runtime/errors.ts';
import { isStandardOutputFile } from '../../../runtime/output/outlet.ts';
import { inScratchFolder, type ScratchParent } from '../scratch-folder.ts';

/** An open file of ours that a child gets. execa takes any; its types know only the first few. */
export type FileDescriptor = 3 | 4 | 5 | 6 | 7 | 8 | 9;

export interface OutputChannel {
  /** What `spawn` is given for the child's `stdout` or `stderr`. */
  readonly childEnd: FileDescriptor | 'pipe' | 'inherit';
  /** What the child writes; undefined with `pipe` (then it is the child's own stream) and with `inherit`. */
  readonly stream: Readable | undefined;
}

export interface OutputChannels {
  readonly stdout: OutputChannel;
  readonly stderr: OutputChannel;
  /** Once the child has its ends: the streams then end when the child does. */
  release(): void;
}

/**
 * Standard output is ours where that is a file: it takes everything at once. Else somebody reads it, or doesn't: an Envoy
 * that writes to it itself keeps all that waits in its memory, without a bound, and cannot end while the pipe is full
 * (measured with 1.40). So that, and standard error, go through named pipes, which we read whatever becomes of what is in
 * them. Where the host has no `mkfifo`, standard output is ours if the child can open it, and Node's pipes serve for the rest.
 *
 * @param scratch where the pipes have names for a moment
 * @throws ChartpilotError FILE_UNWRITABLE when there is no place for them
 */
export function openOutputChannels(
  scratch: readonly ScratchParent[],
  ownOutputIsFile = isStandardOutputFile(),
): OutputChannels {
  const inherited = ownOutputIsFile ? handedOn : undefined;
  const pipes = namedPipes(scratch, inherited === undefined ? 2 : 1);
  return {
    stderr: pipes[0] ?? plain,
    stdout: inherited ?? pipes[1] ?? (canBeOpened('/dev/stdout') ? handedOn : plain),
    release: () => release(pipes),
  };
}

/** Opens the standard error of a child whose other outputs go nowhere; otherwise as {@link openOutputChannels}. */
export function openErrorChannel(scratch: readonly ScratchParent[]): OutputChannel & { release(): void } {
  const pipes = namedPipes(scratch, 1);
  return { ...(pipes[0] ?? plain), release: () => release(pipes) };
}

/** Pipes to a process that outlives this one: who holds it holds their reading ends, too, and one more by which its end is known. */
export interface HeldChannels {
  /** `readEnd` is undefined where our standard output is a file. */
  readonly stdout: OutputChannel & { readonly readEnd: number | undefined };
  readonly stderr: NamedPipe;
  readonly life: NamedPipe;
  release(): void;
}

/**
 * As {@link openOutputChannels}, for a process that outlives this one. Undefined where the host has no `mkfifo`: Node's own pipes cannot be
 * opened by who comes after.
 *
 * @throws ChartpilotError FILE_UNWRITABLE when there is no place for them
 */
export function openHeldChannels(
  scratch: readonly ScratchParent[],
  ownOutputIsFile = isStandardOutputFile(),
): HeldChannels | undefined {
  const pipes = namedPipes(scratch, ownOutputIsFile ? 2 : 3);
  const [stderr, life, stdout] = pipes;
  if (stderr === undefined || life === undefined) return undefined;
  return { stdout: stdout ?? { ...handedOn, readEnd: undefined }, stderr, life, release: () => release(pipes) };
}

const handedOn: OutputChannel = { childEnd: 'inherit', stream: undefined };
const plain: OutputChannel = { childEnd: 'pipe', stream: undefined };

function release(pipes: readonly NamedPipe[]): void {
  for (const { childEnd } of pipes) closeSync(childEnd);
}

function canBeOpened(path: string): boolean {
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
  /** What `stream` reads from. */
  readonly readEnd: FileDescriptor;
}

/** Their names are gone before anybody else could use them. */
function namedPipes(scratch: readonly ScratchParent[], count: number): NamedPipe[] {
  return inScratchFolder(scratch, (folder) => {
    const paths = Array.from({ length: count }, (_, index) => join(folder, String(index)));
    const { error, status, stderr } = spawnSync('mkfifo', ['-m', '600', ...paths], { encoding: 'utf8' });
    if (error !== undefined && isSystemError(error, 'ENOENT')) return [];
    // Not every file system has them: then the next folder may.
    if (status !== 0) throw error ?? new Error(stderr.trim() || `mkfifo: exit code ${status}`);
    return openAll(paths);
  });
}

/** All or none: what was opened before one that cannot be is closed again. */
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
  // The reading end first, without waiting for a writer; then the writing end finds its reader.
  const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK) as FileDescriptor;
  try {
    const childEnd = openSync(path, constants.O_WRONLY) as FileDescriptor;
    return { childEnd, readEnd, stream: new Socket({ fd: readEnd, readable: true, writable: false }) };
  } catch (error) {
    closeSync(readEnd);
    throw error;
  }
}
