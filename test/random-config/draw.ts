/** Seeded random choices: equal seeds give equal choices. */

export class Draw {
  #state: number;

  constructor(seed: number) {
    this.#state = Math.imul(seed, 0x9e3779b1) >>> 0;
  }

  /** A number in [0, 1) (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** Both ends are inclusive. */
  int(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.int(0, items.length - 1)]!;
  }

  /** Calls only the chosen function. */
  one<Item>(...makers: readonly (() => Item)[]): Item {
    return this.pick(makers)();
  }

  list<Item>(from: number, to: number, createItem: (index: number) => Item): Item[] {
    return Array.from({ length: this.int(from, to) }, (_, index) => createItem(index));
  }

  /** Returns different elements. */
  some<Item>(items: readonly Item[], from: number, to: number): Item[] {
    const remainingItems = [...items];
    const count = Math.min(this.int(from, to), remainingItems.length);
    return Array.from({ length: count }, () => remainingItems.splice(this.int(0, remainingItems.length - 1), 1)[0]!);
  }

  /** An object with this field, or an empty one. */
  maybe(name: string, probability: number, createValue: () => unknown): Record<string, unknown> {
    return this.chance(probability) ? { [name]: createValue() } : {};
  }
}
