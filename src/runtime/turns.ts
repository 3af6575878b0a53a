/** Splits long work into turns of the event loop, between which other work (probes, streams, signals) runs. */

export type Steps<Result> = Generator<void, Result, void>;

const defaultTurnMs = 10;

class LoopTurn {
  #startedAt = 0;
  #isRunning = false;
  readonly #waitingCallbacks: (() => void)[] = [];

  /** Start of the current turn, in milliseconds of `performance.now()`. */
  get startedAt(): number {
    if (!this.#isRunning) this.#startTurn();
    return this.#startedAt;
  }

  /** The task that has waited longest gets the next turn. */
  next(): Promise<void> {
    const slotPromise = new Promise<void>((resolve) => this.#waitingCallbacks.push(resolve));
    if (!this.#isRunning) this.#startTurn();
    return slotPromise;
  }

  #startTurn(): void {
    this.#isRunning = true;
    this.#startedAt = performance.now();
    setImmediate(() => {
      this.#isRunning = false;
      const resume = this.#waitingCallbacks.shift();
      if (resume === undefined) return;
      this.#startTurn();
      resume();
    });
  }
}

const loopTurn = new LoopTurn();

/** Milliseconds since the start of the current turn of the event loop, for work that does not know what ran earlier in the turn. */
export function msOfTurn(): number {
  return performance.now() - loopTurn.startedAt;
}

/** Waits for a turn of the event loop that no other long work uses. */
export function nextFreeTurn(): Promise<void> {
  return loopTurn.next();
}

export class Turns {
  readonly #maxTurnMs: number;
  #turnEndsAt: number;
  waitedMs = 0;

  constructor(turnMs = defaultTurnMs) {
    this.#maxTurnMs = turnMs;
    this.#turnEndsAt = loopTurn.startedAt + turnMs;
  }

  /** Call often: waits for the next turn if the current one has reached its time limit. */
  async waitIfTurnEnded(): Promise<void> {
    const startedAt = performance.now();
    if (startedAt < this.#turnEndsAt) return;
    this.#turnEndsAt = loopTurn.startedAt + this.#maxTurnMs;
    if (startedAt < this.#turnEndsAt) return;
    await loopTurn.next();
    this.#turnEndsAt = loopTurn.startedAt + this.#maxTurnMs;
    this.waitedMs += performance.now() - startedAt;
  }

  async runSteps<Result>(steps: Steps<Result>): Promise<Result> {
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
      if (performance.now() >= this.#turnEndsAt) await this.waitIfTurnEnded();
    }
  }
}

/** Each task starts when the previous one has ended, even if it failed. */
export class SerialQueue {
  #lastTask: Promise<unknown> = Promise.resolve();

  run<Result>(task: () => Promise<Result>): Promise<Result> {
    const result = this.#lastTask.then(task);
    this.#lastTask = result.catch(() => {});
    return result;
  }
}

export function runToEnd<Result>(steps: Generator<unknown, Result, void>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
