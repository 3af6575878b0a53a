/**
 * A bounded queue that is fair by key, level by level: round-robin over namespaces, then over their accounts, then over the accounts' connections.
 * One key may use the full capacity while no other key needs it. Callers that only limit resources of tenants must release the item that {@link
 * FairQueue.add} returns.
 */

/** From the outermost level to the innermost: namespace, account, connection. All keys of one queue have the same number of levels. */
export type ShareKey = readonly string[];

export interface FairQueueOptions<Item> {
  readonly maxItems: number;
  /** Maximum items of one key, per level; `undefined` means only {@link maxItems} applies. */
  readonly maxOfKey?: readonly (number | undefined)[];
  readonly precedes?: (one: Item, other: Item) => boolean;
}

interface Share<Item> {
  count: number;
  readonly children: Map<string, Share<Item>>;
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

  /** Number of items of a key, or of all keys with this prefix. */
  sizeOf(key: ShareKey): number {
    return this.#pathOf(key).at(key.length)?.count ?? 0;
  }

  has(item: Item): boolean {
    return this.#keys.has(item);
  }

  items(): Iterable<Item> {
    return this.#keys.keys();
  }

  canAdd(key: ShareKey): boolean {
    if (this.#isFull(key)) return false;
    return this.size < this.#options.maxItems || this.#isBelowLargestShare(key);
  }

  /** @returns the rejected item: the new one, or one of the key with the most items */
  add(item: Item, key: ShareKey): Item | undefined {
    if (this.#isFull(key)) return item;
    this.#insert(item, key);
    if (this.size <= this.#options.maxItems) return undefined;
    const rejectedItem = this.#largestItem(key);
    this.remove(rejectedItem);
    return rejectedItem;
  }

  takeNext(isReady: (item: Item) => boolean = () => true): Item | undefined {
    const item = takeFirstReady(this.#root, isReady);
    if (item !== undefined) this.remove(item);
    return item;
  }

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
    const parentShares = this.#pathOf(key).slice(1);
    return parentShares.some(
      ({ count }, level) => count >= (this.#options.maxOfKey?.[level] ?? Number.POSITIVE_INFINITY),
    );
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
    share.items.splice(
      precedes === undefined ? share.items.length : insertionIndex(item, share.items, precedes),
      0,
      item,
    );
  }

  #pathOf(key: ShareKey): Share<Item>[] {
    const path = [this.#root];
    for (const name of key) {
      const child = path.at(-1)!.children.get(name);
      if (child === undefined) break;
      path.push(child);
    }
    return path;
  }

  #isBelowLargestShare(key: ShareKey): boolean {
    const path = this.#pathOf(key);
    return path.some(({ children }, level) => {
      const ownCount = path.at(level + 1)?.count ?? 0;
      return [...children.values()].some(({ count }) => count > ownCount + 1);
    });
  }

  #largestItem(newKey: ShareKey): Item {
    let share = this.#root;
    for (let level = 0; share.items.length === 0; level++) {
      let largestShare = share.children.get(newKey[level]!);
      for (const child of share.children.values()) if (child.count > (largestShare?.count ?? 0)) largestShare = child;
      share = largestShare!;
    }
    return share.items.at(-1)!;
  }
}

function emptyShare<Item>(): Share<Item> {
  return { count: 0, children: new Map(), items: [] };
}

function takeFirstReady<Item>({ items, children }: Share<Item>, isReady: (item: Item) => boolean): Item | undefined {
  for (const item of items) if (isReady(item)) return item;
  for (const [name, child] of children) {
    const item = takeFirstReady(child, isReady);
    if (item === undefined) continue;
    children.delete(name);
    children.set(name, child);
    return item;
  }
  return undefined;
}

function insertionIndex<Item>(
  item: Item,
  items: readonly Item[],
  precedes: (one: Item, other: Item) => boolean,
): number {
  let lowIndex = 0;
  let highIndex = items.length;
  while (lowIndex < highIndex) {
    const middle = (lowIndex + highIndex) >>> 1;
    if (precedes(item, items[middle]!)) highIndex = middle;
    else lowIndex = middle + 1;
  }
  return lowIndex;
}
