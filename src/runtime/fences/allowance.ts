export interface RateLimit {
  readonly burst: number;
  /** Refill per second, up to the burst size. */
  readonly perSecond: number;
}

/** A rate limit (token bucket). A rejected request consumes no tokens. */
export class RateLimiter {
  readonly #burst: number;
  readonly #perSecond: number;
  readonly #now: () => number;
  #tokens: number;
  #lastRefillAt: number;

  /** @param now monotonic milliseconds */
  constructor({ burst, perSecond }: RateLimit, now: () => number = () => performance.now()) {
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#now = now;
    this.#tokens = burst;
    this.#lastRefillAt = now();
  }

  tryTake(amount = 1): boolean {
    const now = this.#now();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#lastRefillAt) / 1_000) * this.#perSecond);
    this.#lastRefillAt = now;
    if (this.#tokens < amount) return false;
    this.#tokens -= amount;
    return true;
  }
}
