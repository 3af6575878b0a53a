/** Chances from one seed: the same seed draws the same. */

export class Draw {
  #state: number;

  constructor(seed: number) {
    this.#state = Math.imul(seed, 0x9e3779b1) >>> 0;
  }

  /** From 0 to 1, without 1 (mulberry32). */
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

  /** Both ends included. */
  int(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.int(0, items.length - 1)]!;
  }

  /** One of these, each drawn only when it is picked. */
  one<Item>(...makers: readonly (() => Item)[]): Item {
    return this.pick(makers)();
  }

  list<Item>(from: number, to: number, make: (index: number) => Item): Item[] {
    return Array.from({ length: this.int(from, to) }, (_, index) => make(index));
  }

  /** Different ones of these. */
  some<Item>(items: readonly Item[], from: number, to: number): Item[] {
    const left = [...items];
    const count = Math.min(this.int(from, to), left.length);
    return Array.from({ length: count }, () => left.splice(this.int(0, left.length - 1), 1)[0]!);
  }

  /** A field that is there with this probability. */
  maybe(name: string, probability: number, make: () => unknown): Record<string, unknown> {
    return this.chance(probability) ? { [name]: make() } : {};
  }
}
