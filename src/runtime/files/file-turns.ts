/** What is asked of file systems that may hang, which mounted certificates and tokens lie on: one question at a time. */
export class FileTurns {
  #underWay: Promise<void> | undefined;

  /**
   * On a file system that hangs each question holds one of the process's four threads for files until it is answered, whether
   * somebody still waits for it or not. A second one would hold another, and soon no bootstrap could be written.
   *
   * @param signal who gives up before the turn has come asks nothing
   */
  async run<Answer>(question: () => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
    while (this.#underWay !== undefined) await Promise.race([this.#underWay, abortOf(signal)]);
    signal.throwIfAborted();
    const answer = question();
    const over = (): void => {
      this.#underWay = undefined;
    };
    this.#underWay = answer.then(over, over);
    return answer;
  }
}

function abortOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
