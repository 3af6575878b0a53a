/** Splits long work into turns of the event loop, between which other work (probes, streams, signals) runs. */

export type Steps<Result> = Generator<void, Result, void>;

const defaultTurnMs = 10;

class LoopTurn {
  #beganAt = 0;
  #isRunning = false;
  readonly #waitingCallbacks: (() => void)[] = [];

  /** Start of the current turn, in milliseconds of `performance.now()`. */
  get beganAt(): number {
    if (!this.#isRunning) this.#beginTurn();
    return this.#beganAt;
  }

  /** The task that has waited longest gets the next turn. */
  next(): Promise<void> {
    const slotFreed = new Promise<void>((resolve) => this.#waitingCallbacks.push(resolve));
    if (!this.#isRunning) this.#beginTurn();
    return slotFreed;
  }

  #beginTurn(): void {
    this.#isRunning = true;
    this.#beganAt = performance.now();
    setImmediate(() => {
      this.#isRunning = false;
      const resume = this.#waitingCallbacks.shift();
      if (resume === undefined) return;
      this.#beginTurn();
      resume();
    });
  }
}

const loopTurn = new LoopTurn();

/** Milliseconds since the start of the current turn of the event loop, for work that does not know what ran earlier in the turn. */
export function msOfTurn(): number {
  return performance.now() - loopTurn.beganAt;
}

/** Waits for a turn of the event loop that no other long work uses. */
export function nextFreeTurn(): Promise<void> {
  return loopTurn.next();
}

export class Turns {
  readonly #turnMs: number;
  #end: number;
  waitedMs = 0;

  constructor(turnMs = defaultTurnMs) {
    this.#turnMs = turnMs;
    this.#end = loopTurn.beganAt + turnMs;
  }

  /** Call often: waits for the next turn if the current one has reached its time limit. */
  async rest(): Promise<void> {
    const began = performance.now();
    if (began < this.#end) return;
    this.#end = loopTurn.beganAt + this.#turnMs;
    if (began < this.#end) return;
    await loopTurn.next();
    this.#end = loopTurn.beganAt + this.#turnMs;
    this.waitedMs += performance.now() - began;
  }

  async through<Result>(steps: Steps<Result>): Promise<Result> {
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
      if (performance.now() >= this.#end) await this.rest();
    }
  }
}

/** Each task starts when the previous one has ended, even if it failed. */
export class SerialQueue {
  #lastTask: Promise<unknown> = Promise.resolve();

  do<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#lastTask.then(work);
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
