import { letEscape } from '../../../runtime/fences/uncaught.ts';

/** Maximum duration of a slice, so that requests, ACKs and health checks are processed in between. */
export const sliceMs = 5;

/**
 * Maximum number of bytes handed to sockets in one turn of the event loop. The kernel takes them at the end of the
 * turn, which takes a few milliseconds that no slice measures.
 */
const maxTurnBytes = 2 * 1024 * 1024;

/** For all sockets, because there is one event loop. */
let socketBytes = 0;

export function countSocketBytes(bytes: number): void {
  if (socketBytes === 0) {
    setImmediate(() => {
      socketBytes = 0;
    });
  }
  socketBytes += bytes;
}

/** Whether further data must wait for a later turn. */
export function isTurnFull(): boolean {
  return socketBytes >= maxTurnBytes;
}

/** Runs work for many clients in pieces, in slices of the event loop. */
export class Slices {
  readonly #piece: () => boolean;
  #scheduled: NodeJS.Immediate | undefined;

  /**
   * @param piece does a little work and returns whether there is more. It must cope with having none. Errors are
   * reported as uncaught, and the remaining work continues.
   */
  constructor(piece: () => boolean) {
    this.#piece = piece;
  }

  /** Starts in a later turn, unless it is running. */
  begin(): void {
    this.#scheduled ??= setImmediate(() => this.#slice());
  }

  stop(): void {
    if (this.#scheduled !== undefined) clearImmediate(this.#scheduled);
    this.#scheduled = undefined;
  }

  #slice(): void {
    const scheduled = this.#scheduled;
    const until = performance.now() + sliceMs;
    let more = true;
    try {
      do more = this.#piece();
      while (more && this.#scheduled === scheduled && performance.now() < until && !isTurnFull());
    } catch (error) {
      // The rest waits for a later turn, so that repeated errors do not block others.
      letEscape(error);
    }
    // A piece may have stopped the work.
    if (this.#scheduled === scheduled) this.#scheduled = more ? setImmediate(() => this.#slice()) : undefined;
  }
}
