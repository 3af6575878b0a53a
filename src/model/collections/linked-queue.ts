/**
 * A queue with O(1) access to the oldest item and O(1) removal. Reading the oldest entry of a `Map` is expensive: a new iterator passes over all
 * deleted entries, and a retained iterator retains every former hash table.
 */

/** An item can be in only one queue. */
export interface LinkedItem<Item> {
  older: Item | undefined;
  newer: Item | undefined;
}

export class LinkedQueue<Item extends LinkedItem<Item>> {
  #oldest: Item | undefined;
  #newest: Item | undefined;

  get oldest(): Item | undefined {
    return this.#oldest;
  }

  add(item: Item): void {
    item.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = item;
    else this.#newest.newer = item;
    this.#newest = item;
  }

  /** @param item must be in this queue */
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
