import { letEscape } from './fences/uncaught.ts';

/** Processes items in order: items that are added while one is processed wait for its end. */
export class OneAtATime<Item> {
  readonly #take: (item: Item) => void;
  #waiting: Item[] | undefined;

  constructor(take: (item: Item) => void) {
    this.#take = take;
  }

  /** @throws the first error, after all items are processed; further ones are raised as uncaught */
  add(item: Item): void {
    if (this.#waiting !== undefined) {
      this.#waiting.push(item);
      return;
    }
    this.#waiting = [item];
    const errors: unknown[] = [];
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
