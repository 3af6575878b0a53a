/** Takes what comes one after the other: what comes of taking one waits until that one has been taken. */
export class OneAtATime<Item> {
  readonly #take: (item: Item) => void;
  #waiting: Item[] | undefined;

  /** @param take when it throws, what has come of it meanwhile is dropped */
  constructor(take: (item: Item) => void) {
    this.#take = take;
  }

  add(item: Item): void {
    if (this.#waiting !== undefined) {
      this.#waiting.push(item);
      return;
    }
    this.#waiting = [];
    try {
      this.#take(item);
      // It grows while it is gone through.
      for (const next of this.#waiting) this.#take(next);
    } finally {
      this.#waiting = undefined;
    }
  }
}
