/**
 * Tracks keys that are useful only while all objects that hold them exist; reports a key when one of its holders was garbage-collected. Each holder
 * has a single FinalizationRegistry entry, because entries per key would accumulate on long-lived holders.
 */
import { memoizeByObject } from './memoize-by-object.ts';

/** The keys of one holder, each with the key maps of all holders of that key. */
type Keys = Map<string, readonly Keys[]>;

export class HeldKeys {
  readonly #keysOf = memoizeByObject((keyHolder: object): Keys => {
    const keys: Keys = new Map();
    this.#holders.register(keyHolder, keys);
    return keys;
  });
  readonly #holders = new FinalizationRegistry<Keys>((keys) => {
    for (const [key, all] of keys) {
      // The key may have been added again with other holders.
      for (const keyMap of all) if (keyMap.get(key) === all) keyMap.delete(key);
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
    const holdersOfKey = all[0]?.get(key);
    if (
      holdersOfKey !== undefined &&
      holdersOfKey.length === all.length &&
      holdersOfKey.every((keyMap, holderIndex) => keyMap === all[holderIndex])
    )
      return;
    for (const keyMap of all) keyMap.set(key, all);
  }

  countOf(keyHolder: object): number {
    return this.#keysOf(keyHolder).size;
  }
}
