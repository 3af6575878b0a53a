/**
 * A bounded queue whose room and whose turns are shared fairly by key, level by level: namespaces take turns, within a namespace its
 * accounts, within an account its connections. A key may use all of the room while no other key needs it. When the queue is full, the key
 * with the most items gives one up, which is not the new one unless no key has more than its own.
 *
 * It also serves as the set of what tenants hold (registrations, streams): nothing is then taken by {@link FairQueue.next}, and
 * what {@link FairQueue.add} returns has to be released.
 */

/** From the outermost level inwards: namespace, account, connection. All keys of one queue have the same number of levels. */
export type ShareKey = readonly string[];

export interface FairQueueOptions<Item> {
  /** Items of all keys. */
  readonly maxItems: number;
  /** Items of one key, by its level; `undefined`: as many as there is room for. A new item beyond it is rejected. */
  readonly maxOfKey?: readonly (number | undefined)[];
  /** Whether an item is served before another one of the same innermost key. Absent: in order of arrival. */
  readonly precedes?: (one: Item, other: Item) => boolean;
}

interface Share<Item> {
  count: number;
  /** In the order of their turns; empty on the innermost level. */
  readonly children: Map<string, Share<Item>>;
  /** In the order in which they are served; empty on the outer levels. */
  readonly items: Item[];
}

export class FairQueue<Item> {
  readonly #options: FairQueueOptions<Item>;
  readonly #root: Share<Item> = emptyShare();
  readonly #keys = new Map<Item, ShareKey>();

  constructor(options: FairQueueOptions<Item>) {
    this.#options = options;
  }

  get size(): number {
    return this.#keys.size;
  }

  /** Items of a key, or of all keys that begin with it. */
  sizeOf(key: ShareKey): number {
    return this.#pathOf(key).at(key.length)?.count ?? 0;
  }

  has(item: Item): boolean {
    return this.#keys.has(item);
  }

  /** All items, in order of arrival. */
  items(): Iterable<Item> {
    return this.#keys.keys();
  }

  /** Whether a new item of the key would be taken now. */
  accepts(key: ShareKey): boolean {
    if (this.#isFull(key)) return false;
    return this.size < this.#options.maxItems || this.#isBelowLargest(key);
  }

  /** @returns the item that is rejected: the new one, or one of the key with the most; `undefined` if there is room for all */
  add(item: Item, key: ShareKey): Item | undefined {
    if (this.#isFull(key)) return item;
    this.#insert(item, key);
    if (this.size <= this.#options.maxItems) return undefined;
    const rejected = this.#largest(key);
    this.remove(rejected);
    return rejected;
  }

  /**
   * Takes the next item out of the queue.
   *
   * @param isReady items for which it is false keep their place
   */
  next(isReady: (item: Item) => boolean = () => true): Item | undefined {
    const item = firstOf(this.#root, isReady);
    if (item !== undefined) this.remove(item);
    return item;
  }

  /** @returns whether the item was there */
  remove(item: Item): boolean {
    const key = this.#keys.get(item);
    if (key === undefined) return false;
    this.#keys.delete(item);
    const path = this.#pathOf(key);
    const { items } = path.at(-1)!;
    items.splice(items.indexOf(item), 1);
    path.forEach((share, level) => {
      share.count--;
      if (share.count === 0 && level > 0) path[level - 1]!.children.delete(key[level - 1]!);
    });
    return true;
  }

  #isFull(key: ShareKey): boolean {
    const shares = this.#pathOf(key).slice(1);
    return shares.some(({ count }, level) => count >= (this.#options.maxOfKey?.[level] ?? Number.POSITIVE_INFINITY));
  }

  #insert(item: Item, key: ShareKey): void {
    this.#keys.set(item, key);
    let share = this.#root;
    share.count++;
    for (const name of key) {
      const child = share.children.get(name) ?? emptyShare<Item>();
      if (child.count === 0) share.children.set(name, child);
      child.count++;
      share = child;
    }
    const { precedes } = this.#options;
    share.items.splice(precedes === undefined ? share.items.length : placeFor(item, share.items, precedes), 0, item);
  }

  /** Shares from the root to that of the key, as far as they exist. */
  #pathOf(key: ShareKey): Share<Item>[] {
    const path = [this.#root];
    for (const name of key) {
      const child = path.at(-1)!.children.get(name);
      if (child === undefined) break;
      path.push(child);
    }
    return path;
  }

  /** Whether another key of some level has more items than the given one would have with a new item. */
  #isBelowLargest(key: ShareKey): boolean {
    const path = this.#pathOf(key);
    return path.some(({ children }, level) => {
      const own = path.at(level + 1)?.count ?? 0;
      return [...children.values()].some(({ count }) => count > own + 1);
    });
  }

  /** The last item of the key with the most, level by level. Of equal ones the key of the new item gives up its own. */
  #largest(newKey: ShareKey): Item {
    let share = this.#root;
    for (let level = 0; share.items.length === 0; level++) {
      let largest = share.children.get(newKey[level]!);
      for (const child of share.children.values()) if (child.count > (largest?.count ?? 0)) largest = child;
      share = largest!;
    }
    return share.items.at(-1)!;
  }
}

function emptyShare<Item>(): Share<Item> {
  return { count: 0, children: new Map(), items: [] };
}

/** The next ready item, and moves the keys that it belongs to behind all others of their level. */
function firstOf<Item>({ items, children }: Share<Item>, isReady: (item: Item) => boolean): Item | undefined {
  for (const item of items) if (isReady(item)) return item;
  for (const [name, child] of children) {
    const item = firstOf(child, isReady);
    if (item === undefined) continue;
    children.delete(name);
    children.set(name, child);
    return item;
  }
  return undefined;
}

/** After all items that it does not precede. */
function placeFor<Item>(item: Item, items: readonly Item[], precedes: (one: Item, other: Item) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (precedes(item, items[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}
