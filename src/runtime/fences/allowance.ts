export interface Pace {
  readonly burst: number;
  /** Refill per second, up to the burst size. */
  readonly perSecond: number;
}

/** A rate limit (token bucket). A rejected request consumes no tokens. */
export class Allowance {
  readonly #burst: number;
  readonly #perSecond: number;
  readonly #now: () => number;
  #left: number;
  #at: number;

  /** @param now monotonic milliseconds */
  constructor({ burst, perSecond }: Pace, now: () => number = () => performance.now()) {
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#now = now;
    this.#left = burst;
    this.#at = now();
  }

  take(amount = 1): boolean {
    const now = this.#now();
    this.#left = Math.min(this.#burst, this.#left + ((now - this.#at) / 1_000) * this.#perSecond);
    this.#at = now;
    if (this.#left < amount) return false;
    this.#left -= amount;
    return true;
  }
}
