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
  #beganAtMs = Number.NEGATIVE_INFINITY;
  #spentMs = 0;
  #relief: Promise<void> | undefined;
  readonly #followers = new Set<(isCongested: boolean) => void>();

  /** @param now monotonic milliseconds */
  constructor(budget: Budget = defaultBudget, now: () => number = () => performance.now()) {
    this.#budget = budget;
    this.#now = now;
  }

  /** @returns unsubscribe function */
  follow(notify: (isCongested: boolean) => void): () => void {
    this.#followers.add(notify);
    return () => this.#followers.delete(notify);
  }

  /** Resolves immediately within the budget, otherwise when the next period starts. */
  async spend(ms: number): Promise<void> {
    const now = this.#now();
    if (now - this.#beganAtMs >= this.#budget.periodMs) {
      this.#beganAtMs = now;
      this.#spentMs = 0;
    }
    this.#spentMs += ms;
    if (this.#spentMs < this.#budget.workMs) return;
    this.#relief ??= this.#wait(this.#beganAtMs + this.#budget.periodMs - now);
    await this.#relief;
  }

  async #wait(ms: number): Promise<void> {
    for (const notify of this.#followers) notify(true);
    await new Promise<void>((resolve) => void setTimeout(resolve, Math.max(1, ms)).unref());
    this.#relief = undefined;
    for (const notify of this.#followers) notify(false);
  }
}
