/** The other side of a sink, with every fault that one can have, on order. Nothing waits, nothing touches a disk. */
import type { Outlet } from '../outlet.ts';

/** What the next call meets: `room` bytes are taken and no more, or the system refuses with a code. */
export type Fault = { readonly room: number } | { readonly code: 'ENOSPC' | 'EPIPE' | 'EIO' | 'ENXIO' | 'EACCES' };

export class FaultyOutlets {
  /** What each file holds, oldest first. */
  readonly files: string[] = [''];
  /** Of the next writes, in turn; without one all is taken. */
  writeFaults: Fault[] = [];
  /** Of the next opens. */
  openFaults: Fault[] = [];
  opened = 0;
  closed = 0;

  /** Somebody moves the file away. */
  moveAway(): void {
    this.files.push('');
  }

  readonly open = (): Outlet => {
    const fault = this.openFaults.shift();
    if (fault !== undefined && 'code' in fault) throw systemError(fault.code);
    this.opened++;
    const file = this.files.length - 1;
    return {
      // A file system gives the number of a file that is gone to the next one.
      id: 'a file',
      isEmpty: this.files[file] === '',
      maxWriteBytes: 40,
      write: (bytes) => this.#write(file, bytes),
      moved: () => file !== this.files.length - 1,
      close: () => {
        this.closed++;
      },
    };
  };

  #write(file: number, bytes: Buffer): number {
    const fault = this.writeFaults.shift();
    if (fault !== undefined && 'code' in fault) throw systemError(fault.code);
    const taken = Math.min(fault?.room ?? bytes.length, bytes.length);
    this.files[file] += bytes.subarray(0, taken).toString();
    return taken;
  }
}

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: on order`), { code });
}
