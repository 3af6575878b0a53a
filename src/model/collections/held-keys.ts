/**
 * Keys that are useful only while all their holders (objects) exist; reports a key when one of its holders was garbage-collected. Each holder has a
 * single FinalizationRegistry entry, because entries per key would accumulate on long-lived holders.
 */
import { memoizeByObject } from './memoize-by-object.ts';

/** Keys of one holder, each with the key maps of all its holders. */
type Keys = Map<string, readonly Keys[]>;

export class HeldKeys {
  readonly #keysOf = memoizeByObject((holder: object): Keys => {
    const keys: Keys = new Map();
    this.#holders.register(holder, keys);
    return keys;
  });
  readonly #holders = new FinalizationRegistry<Keys>((keys) => {
    for (const [key, all] of keys) {
      // The key may have been added again with other holders.
      for (const one of all) if (one.get(key) === all) one.delete(key);
      this.#onCollected(key);
    }
  });
  readonly #onCollected: (key: string) => void;

  /** @param onCollected called with each key of a collected holder; other holders may use the same key again */
  constructor(onCollected: (key: string) => void) {
    this.#onCollected = onCollected;
  }

  hold(key: string, holders: readonly object[]): void {
    const all = holders.map(this.#keysOf);
    const known = all[0]?.get(key);
    if (known !== undefined && known.length === all.length && known.every((one, at) => one === all[at])) return;
    for (const one of all) one.set(key, all);
  }

  countOf(holder: object): number {
    return this.#keysOf(holder).size;
  }
}
