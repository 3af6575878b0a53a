/** Ensures that a push context contains only objects whose services are computed, because one file can define both. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Runs one computation at a time, followed by another if something changed during it. */
export class ServiceComputations {
  #running: Promise<unknown> | undefined;

  run<Result>(computation: Promise<Result>): Promise<Result> {
    this.#running = computation;
    const ended = (): void => {
      if (this.#running === computation) this.#running = undefined;
    };
    computation.then(ended, ended);
    return computation;
  }

  /** Resolves after the running and the next computation, even if they fail. Services then reflect all objects that changed before this call. */
  async settled(): Promise<void> {
    for (let waits = 0; waits < 2 && this.#running !== undefined; waits++) {
      await this.#running.catch(() => {});
      // The chart starts the next computation when it receives this result.
      await nextTurn();
    }
  }
}
