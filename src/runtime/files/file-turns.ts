/**
 * Serializes operations on file systems that may hang, such as those of mounted certificates and tokens: each hanging operation blocks one of the
 * four threads of libuv's pool, even if its caller has timed out.
 */
export class FileTurns {
  #runningTask: Promise<void> | undefined;

  /** @param signal an operation that is aborted while it waits is not started */
  async run<Result>(operation: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    while (this.#runningTask !== undefined) await Promise.race([this.#runningTask, abortOf(signal)]);
    signal.throwIfAborted();
    const result = operation();
    const releaseTurn = (): void => {
      this.#runningTask = undefined;
    };
    this.#runningTask = result.then(releaseTurn, releaseTurn);
    return result;
  }
}

function abortOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
