/** A limited number of clients that are in the same stage of connecting at a time. */

/** Taken by one client. */
export interface Slot {
  /** The client has left the stage, or its connection is closed: the next one may begin. Idempotent. */
  release(): void;
}

/** Limit of a slot: a client that does not respond costs no processor time, and must not keep others from connecting. */
export const maxSlotMs = 1_000;

export class Slots {
  readonly #now: () => number;
  readonly #onFree: () => void;
  /** Time at which each was taken, oldest first. */
  readonly #taken = new Map<Slot, number>();
  readonly #maxMs: number;
  #count: number;

  /**
   * @param now monotonic milliseconds
   * @param onFree called when a slot is released, and after {@link resize}
   */
  constructor(count: number, now: () => number, onFree: () => void, maxMs = maxSlotMs) {
    this.#count = count;
    this.#maxMs = maxMs;
    this.#now = now;
    this.#onFree = onFree;
  }

  resize(count: number): void {
    this.#count = count;
    this.#onFree();
  }

  /** Takes a slot, even if none is free. */
  take(): Slot {
    const slot: Slot = {
      release: () => {
        if (this.#taken.delete(slot)) this.#onFree();
      },
    };
    this.#taken.set(slot, this.#now());
    return slot;
  }

  /** Milliseconds until a slot is free, unless one is released earlier; 0 if one is free. */
  get freeInMs(): number {
    const now = this.#now();
    for (const [slot, since] of this.#taken) {
      if (now - since < this.#maxMs) return this.#taken.size < this.#count ? 0 : since + this.#maxMs - now;
      this.#taken.delete(slot);
    }
    return 0;
  }
}
