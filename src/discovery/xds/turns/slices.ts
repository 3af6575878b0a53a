import { letEscape } from '../../../runtime/fences/uncaught.ts';

/** Longest time for which work goes on before others get their turn: requests, acknowledgements, health checks. */
export const sliceMs = 5;

/**
 * What may be handed to sockets in one turn of the event loop: the kernel takes it when the turn is over, and that takes a few
 * milliseconds for so much, which no slice sees.
 */
const turnBytes = 2 * 1024 * 1024;

/** Bytes handed over to all sockets: there is one event loop. */
let handedOver = 0;

/** Counts what a socket is handed in this turn. */
export function noteHandedOver(bytes: number): void {
  if (handedOver === 0) {
    setImmediate(() => {
      handedOver = 0;
    });
  }
  handedOver += bytes;
}

/** Whether sockets were handed as much as the kernel may take at a stretch: what else there is to be sent waits for a later turn. */
export function isTurnFull(): boolean {
  return handedOver >= turnBytes;
}

/** Work for many clients that is done piece by piece, in slices of the event loop. */
export class Slices {
  readonly #piece: () => boolean;
  #scheduled: NodeJS.Immediate | undefined;

  /**
   * @param piece does a little, and says whether there is more to do: when there is nothing, too. It should not throw; when
   *   it does that is told of, and what is left is gone on with.
   */
  constructor(piece: () => boolean) {
    this.#piece = piece;
  }

  /** There is work: it begins in a later turn, unless it is going on already. */
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
      // There may be more work. It waits for a later turn: what throws every time keeps nobody else from theirs.
      letEscape(error);
    }
    // A piece may have brought the end of the work.
    if (this.#scheduled === scheduled) this.#scheduled = more ? setImmediate(() => this.#slice()) : undefined;
  }
}
