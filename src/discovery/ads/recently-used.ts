/** Keeps what was used last, up to a number of bytes; the last one in any case. */
export class RecentlyUsed<Key, Value> {
  readonly #maxBytes: number;
  readonly #bytesOf: (value: Value) => number;
  /** Least recently used first. */
  readonly #values = new Map<Key, Value>();
  #bytes = 0;

  constructor(maxBytes: number, bytesOf: (value: Value) => number) {
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
    this.#bytes += this.#bytesOf(value);
    for (const [oldest, unused] of this.#values) {
      if (this.#bytes <= this.#maxBytes || oldest === key) break;
      this.#values.delete(oldest);
      this.#bytes -= this.#bytesOf(unused);
    }
  }
}
