/** Keeps push contexts from showing objects of which the services are not computed yet: both may come in one file. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Computations of services, one at a time. A change during one begins the next one when it ends. */
export class ServiceComputations {
  #running: Promise<unknown> | undefined;

  /** Runs a computation, or follows one. @returns its result */
  run<Result>(computation: Promise<Result>): Promise<Result> {
    this.#running = computation;
    const ended = (): void => {
      if (this.#running === computation) this.#running = undefined;
    };
    computation.then(ended, ended);
    return computation;
  }

  /**
   * Resolves when services reflect the objects that changed before this call, or could not be computed. At most two computations are
   * waited for: the one that runs, and the next one, which takes all changes so far.
   */
  async settled(): Promise<void> {
    for (let waits = 0; waits < 2 && this.#running !== undefined; waits++) {
      await this.#running.catch(() => {});
      // The chart begins the next one when it is told of the result.
      await nextTurn();
    }
  }
}
