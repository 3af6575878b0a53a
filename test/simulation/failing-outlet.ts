/** The other side of a sink whose faults last until they are over: a disk, a pipe and its reader. All it took is kept. */
import type { Outlet } from '../../src/runtime/output/outlet.ts';
import type { SinkFault } from './random-schedule.ts';

type LastingFault = Extract<SinkFault, { forMs: number }>;

const refusals = {
  full: { code: 'ENOSPC', message: 'ENOSPC: no space left on device, write' },
  broken: { code: 'EPIPE', message: 'EPIPE: broken pipe, write' },
};
/** Of a deed of the sink that waits for room: more would be said by nothing new. */
const mostRefusals = 50;

export class FailingOutlet {
  /** What each file holds, oldest first: one that is moved away is followed by another. */
  readonly files: Buffer[][] = [[]];
  readonly #isFile: boolean;
  #fault: LastingFault | undefined;
  #room = 0;
  /** Of calls since the sink was last given something to do, those that were refused, or for which there was no room. */
  #refused = 0;

  /** @param isFile else a pipe: it is never empty, and nobody moves it away */
  constructor(isFile: boolean) {
    this.#isFile = isFile;
  }

  begin(fault: LastingFault): void {
    this.#fault = fault;
    this.#room = fault.afterBytes;
  }

  /** @param fault that is over; none: whatever there is. A later one goes on */
  end(fault: LastingFault | undefined = this.#fault): void {
    if (fault === this.#fault) this.#fault = undefined;
  }

  moveAway(): void {
    if (this.#isFile) this.files.push([]);
  }

  /** How often it was asked in vain since this was last asked. */
  takeRefused(): number {
    const refused = this.#refused;
    this.#refused = 0;
    return refused;
  }

  /** Bytes, of each file. */
  texts(): string[] {
    return this.files.map((parts) => Buffer.concat(parts).toString());
  }

  readonly open = (): Outlet => {
    const file = this.files.length - 1;
    // A pipe that nobody reads cannot be opened either, a full disk lets itself be opened.
    if (this.#fault?.what === 'broken' && this.#room === 0) throw this.#refuse('broken');
    return {
      id: this.#isFile ? `file ${file}` : '',
      isEmpty: this.#isFile && this.files[file]!.length === 0,
      maxWriteBytes: this.#isFile ? 256 * 1024 : 4_096,
      write: (bytes) => this.#write(this.files[file]!, bytes),
      moved: () => file !== this.files.length - 1,
      close: () => {},
    };
  };

  #write(file: Buffer[], bytes: Buffer): number {
    const taken = this.#fault === undefined ? bytes.length : Math.min(bytes.length, this.#room);
    this.#room -= taken;
    if (taken > 0) file.push(Buffer.from(bytes.subarray(0, taken)));
    else if (this.#fault !== undefined && this.#fault.what !== 'stalled') throw this.#refuse(this.#fault.what);
    else if (++this.#refused > mostRefusals) throw new Error('the sink waits for a reader that does not read');
    return taken;
  }

  #refuse(what: keyof typeof refusals): Error {
    this.#refused++;
    const { code, message } = refusals[what];
    return Object.assign(new Error(message), { code });
  }
}
