import { throwUncaught } from './fences/uncaught.ts';

/** Items that are added while one is processed wait for its end. */
export class SerialProcessor<Item> {
  readonly #handle: (item: Item) => void;
  #waitingItems: Item[] | undefined;

  constructor(handle: (item: Item) => void) {
    this.#handle = handle;
  }

  /** @throws the first error, after all items are processed; further ones are raised as uncaught */
  add(item: Item): void {
    if (this.#waitingItems !== undefined) {
      this.#waitingItems.push(item);
      return;
    }
    this.#waitingItems = [item];
    const errors: unknown[] = [];
    for (const next of this.#waitingItems) {
      try {
        this.#handle(next);
      } catch (error) {
        errors.push(error);
      }
    }
    this.#waitingItems = undefined;
    if (errors.length === 0) return;
    for (const error of errors.slice(1)) throwUncaught(error);
    throw errors[0];
  }
}
