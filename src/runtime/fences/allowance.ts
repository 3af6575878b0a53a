export interface Pace {
  /** At once. */
  readonly most: number;
  /** And again each second, up to that. */
  readonly perSecond: number;
}

/** What somebody may ask for at once, and then each second: whoever asks for more is refused, and costs no more than that. */
export class Allowance {
  readonly #most: number;
  readonly #perSecond: number;
  readonly #now: () => number;
  #left: number;
  #at: number;

  /** @param now milliseconds of a clock that nobody sets */
  constructor({ most, perSecond }: Pace, now: () => number = () => performance.now()) {
    this.#most = most;
    this.#perSecond = perSecond;
    this.#now = now;
    this.#left = most;
    this.#at = now();
  }

  /** @returns whether there was as much */
  take(amount = 1): boolean {
    const now = this.#now();
    this.#left = Math.min(this.#most, this.#left + ((now - this.#at) / 1_000) * this.#perSecond);
    this.#at = now;
    if (this.#left < amount) return false;
    this.#left -= amount;
    return true;
  }
}
