/**
 * A queue with O(1) access to the oldest item and O(1) removal.
 * A `Map` has no cheap access to its oldest entry: a new iterator passes over all deleted entries, and a retained one keeps every former
 * hash table alive.
 */

/** An item may be in one queue only. */
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

  /** @param item in this queue; its links are cleared */
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
