import { letEscape } from '../../../runtime/fences/uncaught.ts';

/** Requests, ACKs and health checks are processed between slices. */
export const sliceMs = 5;

/**
 * Maximum bytes written to sockets in one iteration of the event loop. The kernel copies them at its end, which takes a few milliseconds that no
 * slice measures.
 */
const maxTurnBytes = 2 * 1024 * 1024;

/** Bytes written to all sockets, because there is one event loop. */
let socketBytes = 0;

export function countSocketBytes(bytes: number): void {
  if (socketBytes === 0) {
    setImmediate(() => {
      socketBytes = 0;
    });
  }
  socketBytes += bytes;
}

/** If true, further writes must wait for a later iteration of the event loop. */
export function isTurnFull(): boolean {
  return socketBytes >= maxTurnBytes;
}

export class Slices {
  readonly #runSlice: () => boolean;
  #scheduledSlice: NodeJS.Immediate | undefined;

  /** @param runSlice runs some work, possibly none, and returns whether there is more. An error is reported as uncaught, and other work continues. */
  constructor(runSlice: () => boolean) {
    this.#runSlice = runSlice;
  }

  /** The first slice runs asynchronously. Does nothing if slices are running. */
  start(): void {
    this.#scheduledSlice ??= setImmediate(() => this.#slice());
  }

  stop(): void {
    if (this.#scheduledSlice !== undefined) clearImmediate(this.#scheduledSlice);
    this.#scheduledSlice = undefined;
  }

  #slice(): void {
    const scheduled = this.#scheduledSlice;
    const deadline = performance.now() + sliceMs;
    let hasMore = true;
    try {
      do hasMore = this.#runSlice();
      while (hasMore && this.#scheduledSlice === scheduled && performance.now() < deadline && !isTurnFull());
    } catch (error) {
      // Continues in a later iteration, so that repeated errors do not block other tasks.
      letEscape(error);
    }
    // The slice may have stopped the work.
    if (this.#scheduledSlice === scheduled)
      this.#scheduledSlice = hasMore ? setImmediate(() => this.#slice()) : undefined;
  }
}
