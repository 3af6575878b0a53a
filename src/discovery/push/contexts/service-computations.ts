/** Ensures that a push context contains no objects whose services are not computed yet: one file may define both. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Runs one computation at a time. After a change during one, another follows. */
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

  /**
   * Resolves when the services reflect all objects changed before this call, or computing them failed: after the
   * running computation and the next one.
   */
  async settled(): Promise<void> {
    for (let waits = 0; waits < 2 && this.#running !== undefined; waits++) {
      await this.#running.catch(() => {});
      // The chart starts the next computation when it receives the result.
      await nextTurn();
    }
  }
}
