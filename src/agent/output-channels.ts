/**
 * Outputs of a child process that the child can open again by name. Meshes write access logs to `/dev/stdout`; Node's own
 * pipes are sockets, which Linux refuses to open (ENXIO), so Envoy would reject every such listener.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';

/** An open file of ours that a child gets. execa takes any; its types know only the first few. */
export type FileDescriptor = 3 | 4 | 5 | 6 | 7 | 8 | 9;

export interface OutputChannel {
  /** For the child's `stdout` or `stderr`. */
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
 * Standard output is ours where the child can open it: what Envoy writes there is what users asked for, and goes out
 * untouched. All else goes through named pipes, or through Node's where the host has no `mkfifo`.
 */
export function openOutputChannels(ownOutput = '/dev/stdout'): OutputChannels {
  const inherited: OutputChannel | undefined = canBeOpened(ownOutput)
    ? { childEnd: 'inherit', stream: undefined }
    : undefined;
  const pipes = namedPipes(inherited === undefined ? 2 : 1);
  const plain: OutputChannel = { childEnd: 'pipe', stream: undefined };
  return {
    stderr: pipes[0] ?? plain,
    stdout: inherited ?? pipes[1] ?? plain,
    release: () => {
      for (const { childEnd } of pipes) closeSync(childEnd);
    },
  };
}

function canBeOpened(path: string): boolean {
  try {
    closeSync(openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK));
    return true;
  } catch {
    return false;
  }
}

interface NamedPipe extends OutputChannel {
  readonly childEnd: FileDescriptor;
  readonly stream: Readable;
}

/** Their names are gone before anybody else could use them. */
function namedPipes(count: number): NamedPipe[] {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-output-'));
  try {
    const paths = Array.from({ length: count }, (_, index) => join(folder, String(index)));
    if (spawnSync('mkfifo', ['-m', '600', ...paths], { stdio: 'ignore' }).status !== 0) return [];
    return paths.map((path) => {
      // The reading end first, without waiting for a writer; then the writing end finds its reader.
      const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
      const childEnd = openSync(path, constants.O_WRONLY) as FileDescriptor;
      return { childEnd, stream: new Socket({ fd: readEnd, readable: true, writable: false }) };
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
