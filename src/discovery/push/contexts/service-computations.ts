/** One file can define an object and a service that it needs, so a push context must not contain the object before the service is computed. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Runs one computation at a time, followed by another if something changed during it. */
export class ServiceComputations {
  #runningTask: Promise<unknown> | undefined;

  run<Result>(computation: Promise<Result>): Promise<Result> {
    this.#runningTask = computation;
    const onEnded = (): void => {
      if (this.#runningTask === computation) this.#runningTask = undefined;
    };
    computation.then(onEnded, onEnded);
    return computation;
  }

  /** Services then reflect all objects that changed before this call. Resolves even if computations fail. */
  async waitUntilIdle(): Promise<void> {
    for (let waitCount = 0; waitCount < 2 && this.#runningTask !== undefined; waitCount++) {
      await this.#runningTask.catch(() => {});
      // The chart starts the next computation when it receives this result.
      await nextTurn();
    }
  }
}
