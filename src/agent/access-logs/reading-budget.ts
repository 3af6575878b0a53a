/** Limits the CPU time for access logs, so that probes, secrets and xDS streams stay responsive under any traffic. */

export interface Budget {
  readonly workMs: number;
  readonly periodMs: number;
}

/** Half of a core: about 50,000 requests per second (README.md). */
export const defaultBudget: Budget = { workMs: 250, periodMs: 500 };

export class ReadingBudget {
  readonly #budget: Budget;
  readonly #now: () => number;
  #periodStartMs = Number.NEGATIVE_INFINITY;
  #spentMs = 0;
  #nextPeriod: Promise<void> | undefined;
  readonly #subscribers = new Set<(isCongested: boolean) => void>();

  /** @param now monotonic milliseconds */
  constructor(budget: Budget = defaultBudget, now: () => number = () => performance.now()) {
    this.#budget = budget;
    this.#now = now;
  }

  /** @returns unsubscribe function */
  subscribe(notify: (isCongested: boolean) => void): () => void {
    this.#subscribers.add(notify);
    return () => this.#subscribers.delete(notify);
  }

  /** Resolves immediately within the budget, otherwise when the next period starts. */
  async spend(ms: number): Promise<void> {
    const nowMs = this.#now();
    if (nowMs - this.#periodStartMs >= this.#budget.periodMs) {
      this.#periodStartMs = nowMs;
      this.#spentMs = 0;
    }
    this.#spentMs += ms;
    if (this.#spentMs < this.#budget.workMs) return;
    this.#nextPeriod ??= this.#wait(this.#periodStartMs + this.#budget.periodMs - nowMs);
    await this.#nextPeriod;
  }

  async #wait(ms: number): Promise<void> {
    for (const notify of this.#subscribers) notify(true);
    await new Promise<void>((resolve) => void setTimeout(resolve, Math.max(1, ms)).unref());
    this.#nextPeriod = undefined;
    for (const notify of this.#subscribers) notify(false);
  }
}
