/** A pipe that the test may read late, never, or close. Node's own pipes are sockets. */
import { spawnSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isSystemError } from '../../src/runtime/errors.ts';

const { O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;
const chunkBytes = 64 * 1024;

export class NamedPipe {
  /** File descriptor for a program's output. */
  readonly writeEnd: number;
  #readEnd: number | undefined;

  constructor() {
    const folder = mkdtempSync(join(tmpdir(), 'chartpilot-pipe-'));
    try {
      const path = join(folder, 'pipe');
      const { status } = spawnSync('mkfifo', [path]);
      if (status !== 0) throw new Error('mkfifo failed');
      this.#readEnd = openSync(path, O_RDONLY | O_NONBLOCK);
      this.writeEnd = openSync(path, O_WRONLY);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  /** Fills the pipe until it blocks. */
  fill(): void {
    const nonBlocking = openSync(`/proc/self/fd/${this.writeEnd}`, O_WRONLY | O_NONBLOCK);
    try {
      for (;;) writeSync(nonBlocking, Buffer.alloc(1, '\n'));
    } catch (error) {
      if (!isSystemError(error, 'EAGAIN')) throw error;
    } finally {
      closeSync(nonBlocking);
    }
  }

  /** Returns the buffered content; `undefined` if there is no writer. */
  read(maxBytes = chunkBytes): string | undefined {
    const bytes = Buffer.alloc(maxBytes);
    try {
      const count = readSync(this.#readEnd!, bytes);
      return count === 0 ? undefined : bytes.subarray(0, count).toString();
    } catch (error) {
      if (isSystemError(error, 'EAGAIN')) return '';
      throw error;
    }
  }

  leave(): void {
    if (this.#readEnd !== undefined) closeSync(this.#readEnd);
    this.#readEnd = undefined;
  }

  /** Closes the test's write end after the program has inherited it. */
  handedOver(): void {
    closeSync(this.writeEnd);
  }
}
