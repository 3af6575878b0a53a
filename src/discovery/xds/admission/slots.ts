/** Limits how many clients are in one stage of connecting. */

export interface Slot {
  /** Called when the client completes the stage or disconnects. Idempotent. */
  release(): void;
}

/** A slot expires after this time, because a client that does not respond costs no CPU time. */
export const maxSlotMs = 1_000;

export class Slots {
  readonly #now: () => number;
  readonly #onFree: () => void;
  /** Acquisition time of each slot, oldest first. */
  readonly #takenSlots = new Map<Slot, number>();
  readonly #maxMs: number;
  #count: number;

  /**
   * @param now monotonic clock in milliseconds
   * @param onFree also called after {@link resize}
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

  /** Exceeds the limit if no slot is free. */
  acquire(): Slot {
    const slot: Slot = {
      release: () => {
        if (this.#takenSlots.delete(slot)) this.#onFree();
      },
    };
    this.#takenSlots.set(slot, this.#now());
    return slot;
  }

  get msUntilFree(): number {
    const now = this.#now();
    for (const [slot, since] of this.#takenSlots) {
      if (now - since < this.#maxMs) return this.#takenSlots.size < this.#count ? 0 : since + this.#maxMs - now;
      this.#takenSlots.delete(slot);
    }
    return 0;
  }
}
