/** Keeps what was used last, up to a number of bytes; the last one in any case. */
export class RecentlyUsed<Key, Value> {
  readonly #maxBytes: number;
  readonly #bytesOf: (value: Value, key: Key) => number;
  /** Least recently used first. */
  readonly #values = new Map<Key, Value>();
  /** Where dropping has got to: all that is left is after it. Beginning anew would pass by all that was deleted. */
  #hand = this.#values.entries();
  #bytes = 0;

  constructor(maxBytes: number, bytesOf: (value: Value, key: Key) => number) {
    this.#maxBytes = maxBytes;
    this.#bytesOf = bytesOf;
  }

  get size(): number {
    return this.#values.size;
  }

  get(key: Key): Value | undefined {
    const value = this.#values.get(key);
    if (value === undefined) return undefined;
    this.#values.delete(key);
    this.#values.set(key, value);
    return value;
  }

  /** Keeps a value under a key that has none. */
  add(key: Key, value: Value): void {
    this.#values.set(key, value);
    this.#bytes += this.#bytesOf(value, key);
    while (this.#bytes > this.#maxBytes && this.#values.size > 1) {
      const [oldest, unused] = this.#hand.next().value!;
      this.#values.delete(oldest);
      this.#bytes -= this.#bytesOf(unused, oldest);
    }
  }
}
