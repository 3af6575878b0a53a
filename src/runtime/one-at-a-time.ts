import { letEscape } from './fences/uncaught.ts';

/** Takes what comes one after the other: what comes of taking one waits until that one has been taken. */
export class OneAtATime<Item> {
  readonly #take: (item: Item) => void;
  #waiting: Item[] | undefined;

  constructor(take: (item: Item) => void) {
    this.#take = take;
  }

  /** @throws the first error of taking it or what has come of it, when all of that was taken; others go to the last fence */
  add(item: Item): void {
    if (this.#waiting !== undefined) {
      this.#waiting.push(item);
      return;
    }
    this.#waiting = [item];
    const errors: unknown[] = [];
    // It grows while it is gone through.
    for (const next of this.#waiting) {
      try {
        this.#take(next);
      } catch (error) {
        errors.push(error);
      }
    }
    this.#waiting = undefined;
    if (errors.length === 0) return;
    for (const error of errors.slice(1)) letEscape(error);
    throw errors[0];
  }
}
