/**
 * Long work in turns of the event loop: other work (probes, streams, signals) runs between them. All such work shares the time of one
 * turn: several at once, or one after another, do not make it longer.
 */

/** Work in steps, each of which is short; what comes of it is returned. */
export type Steps<Result> = Generator<void, Result, void>;

const defaultTurnMs = 10;

/** One iteration of the event loop. */
class LoopTurn {
  #beganAt = 0;
  #isRunning = false;
  readonly #waiting: (() => void)[] = [];

  /** When the running turn began, in milliseconds of `performance.now()`. */
  get beganAt(): number {
    if (!this.#isRunning) this.#begin();
    return this.#beganAt;
  }

  /** Waits for a turn: the work that has waited longest has the next one. */
  next(): Promise<void> {
    const turn = new Promise<void>((resolve) => this.#waiting.push(resolve));
    if (!this.#isRunning) this.#begin();
    return turn;
  }

  #begin(): void {
    this.#isRunning = true;
    this.#beganAt = performance.now();
    setImmediate(() => {
      this.#isRunning = false;
      const resume = this.#waiting.shift();
      if (resume === undefined) return;
      this.#begin();
      resume();
    });
  }
}

const loopTurn = new LoopTurn();

/** Milliseconds since the running turn of the event loop began, for work that does not know what else ran in it. */
export function msOfTurn(): number {
  return performance.now() - loopTurn.beganAt;
}

/** Waits for a turn of the event loop that other work in turns leaves free. */
export function nextFreeTurn(): Promise<void> {
  return loopTurn.next();
}

export class Turns {
  readonly #turnMs: number;
  #end: number;
  /** Milliseconds in which other work had its turn. */
  waitedMs = 0;

  /** @param turnMs how long work goes on before others have their turn */
  constructor(turnMs = defaultTurnMs) {
    this.#turnMs = turnMs;
    this.#end = loopTurn.beganAt + turnMs;
  }

  /** Called often: waits for the next turn when this one has lasted long enough. */
  async rest(): Promise<void> {
    const began = performance.now();
    if (began < this.#end) return;
    this.#end = loopTurn.beganAt + this.#turnMs;
    if (began < this.#end) return;
    await loopTurn.next();
    this.#end = loopTurn.beganAt + this.#turnMs;
    this.waitedMs += performance.now() - began;
  }

  /** Does all steps, with a rest where one is due. */
  async through<Result>(steps: Steps<Result>): Promise<Result> {
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
      if (performance.now() >= this.#end) await this.rest();
    }
  }
}

/** Long works that must not meet half way: each begins when the one before it has ended, however that ended. */
export class OneByOne {
  #last: Promise<unknown> = Promise.resolve();

  /** Has its turn after all that were asked for earlier. */
  do<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }
}

/** Does all steps without a rest. */
export function atOnce<Result>(steps: Generator<unknown, Result, void>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
