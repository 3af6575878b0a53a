/**
 * Long work beside other work: it goes on for a while, then the event loop has its turn with whatever came meanwhile
 * (probes, streams, signals).
 */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Work in steps, each of which is short; what comes of it is returned. */
export type Steps<Result> = Generator<void, Result, void>;

const defaultTurnMs = 10;

export class Turns {
  readonly #turnMs: number;
  #end: number;
  /** Milliseconds in which other work had its turn. */
  waitedMs = 0;

  /** @param turnMs how long work goes on before others have their turn */
  constructor(turnMs = defaultTurnMs) {
    this.#turnMs = turnMs;
    this.#end = performance.now() + turnMs;
  }

  /** Called often: waits for the next turn when this one has lasted long enough. */
  async rest(): Promise<void> {
    const began = performance.now();
    if (began < this.#end) return;
    await nextTurn();
    const now = performance.now();
    this.waitedMs += now - began;
    this.#end = now + this.#turnMs;
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
