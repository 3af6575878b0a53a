/** The outlet of a sink with temporary faults: a disk, or a pipe and its reader. Keeps all written bytes. */
import type { Outlet } from '../../src/runtime/output/outlet.ts';
import type { SinkFault } from './random-schedule.ts';

type LastingFault = Extract<SinkFault, { forMs: number }>;

const refusalErrors = {
  full: { code: 'ENOSPC', message: 'ENOSPC: no space left on device, write' },
  broken: { code: 'EPIPE', message: 'EPIPE: broken pipe, write' },
};
/** Maximum number of refused calls for one sink task that waits for space. */
const maxRefusals = 50;

export class FailingOutlet {
  /** Contents of files, oldest first: a renamed file is followed by another. */
  readonly files: Buffer[][] = [[]];
  readonly #isFile: boolean;
  #fault: LastingFault | undefined;
  #capacity = 0;
  /** Calls since the last task of the sink that were refused or found no space. */
  #refusedCount = 0;

  /** @param isFile false: a pipe, which is never empty and not renamed */
  constructor(isFile: boolean) {
    this.#isFile = isFile;
  }

  beginFault(fault: LastingFault): void {
    this.#fault = fault;
    this.#capacity = fault.afterBytes;
  }

  /** @param fault the fault that ends (default: the current one); a later fault continues */
  endFault(fault: LastingFault | undefined = this.#fault): void {
    if (fault === this.#fault) this.#fault = undefined;
  }

  moveAway(): void {
    if (this.#isFile) this.files.push([]);
  }

  /** Number of failed calls since the last call of this method. */
  takeRefused(): number {
    const refusedCount = this.#refusedCount;
    this.#refusedCount = 0;
    return refusedCount;
  }

  /** Contents of each file. */
  texts(): string[] {
    return this.files.map((chunks) => Buffer.concat(chunks).toString());
  }

  readonly open = (): Outlet => {
    const file = this.files.length - 1;
    // A pipe without a reader cannot be opened; a file on a full disk can.
    if (this.#fault?.kind === 'broken' && this.#capacity === 0) throw this.#refusalError('broken');
    return {
      id: this.#isFile ? `file ${file}` : '',
      isEmpty: this.#isFile && this.files[file]!.length === 0,
      maxWriteBytes: this.#isFile ? 256 * 1024 : 4_096,
      write: (bytes) => this.#write(this.files[file]!, bytes),
      isMoved: () => file !== this.files.length - 1,
      close: () => {},
    };
  };

  #write(file: Buffer[], bytes: Buffer): number {
    const takenBytes = this.#fault === undefined ? bytes.length : Math.min(bytes.length, this.#capacity);
    this.#capacity -= takenBytes;
    if (takenBytes > 0) file.push(Buffer.from(bytes.subarray(0, takenBytes)));
    else if (this.#fault !== undefined && this.#fault.kind !== 'stalled') throw this.#refusalError(this.#fault.kind);
    else if (++this.#refusedCount > maxRefusals) throw new Error('the sink waits for a reader that does not read');
    return takenBytes;
  }

  #refusalError(fault: keyof typeof refusalErrors): Error {
    this.#refusedCount++;
    const { code, message } = refusalErrors[fault];
    return Object.assign(new Error(message), { code });
  }
}
