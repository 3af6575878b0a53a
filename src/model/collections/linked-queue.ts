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
  #oldestItem: Item | undefined;
  #newestItem: Item | undefined;

  get oldest(): Item | undefined {
    return this.#oldestItem;
  }

  add(item: Item): void {
    item.older = this.#newestItem;
    if (this.#newestItem === undefined) this.#oldestItem = item;
    else this.#newestItem.newer = item;
    this.#newestItem = item;
  }

  /** @param item must be in this queue */
  remove(item: Item): void {
    const { older, newer } = item;
    if (older === undefined) this.#oldestItem = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newestItem = older;
    else newer.older = older;
    item.older = undefined;
    item.newer = undefined;
  }

  clear(): void {
    this.#oldestItem = undefined;
    this.#newestItem = undefined;
  }
}
