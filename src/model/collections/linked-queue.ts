/**
 * Items in the order in which they came, each of which knows its neighbours: the oldest is found, and any is taken out, at the
 * same cost however many there are.
 *
 * A `Map` has an order, too, but no cheap way to its oldest entry: a new iterator passes by all that were deleted, and one that
 * is kept keeps each table that the map has had since, with whatever was in it.
 */

/** An item of one queue at most. */
export interface Linked<Item> {
  older: Item | undefined;
  newer: Item | undefined;
}

export class LinkedQueue<Item extends Linked<Item>> {
  #oldest: Item | undefined;
  #newest: Item | undefined;

  get oldest(): Item | undefined {
    return this.#oldest;
  }

  /** @param item in no queue */
  add(item: Item): void {
    item.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = item;
    else this.#newest.newer = item;
    this.#newest = item;
  }

  /** @param item in this queue; what it was between is not held by it */
  remove(item: Item): void {
    const { older, newer } = item;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    item.older = undefined;
    item.newer = undefined;
  }

  clear(): void {
    this.#oldest = undefined;
    this.#newest = undefined;
  }
}
