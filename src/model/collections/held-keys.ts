/** Tracks keys that are useful only while all objects that hold them exist; reports a key when one of its holders was garbage-collected. */
import { memoizeByObject } from './memoize-by-object.ts';

type KeyList = Map<string, readonly KeyList[]>;

export class HeldKeys {
  readonly #keysOf = memoizeByObject((keyHolder: object): KeyList => {
    const keys: KeyList = new Map();
    this.#holders.register(keyHolder, keys);
    return keys;
  });
  readonly #holders = new FinalizationRegistry<KeyList>((keys) => {
    for (const [key, heldKeys] of keys) {
      // The key may have been added again with other holders.
      for (const keyMap of heldKeys) if (keyMap.get(key) === heldKeys) keyMap.delete(key);
      this.#onCollected(key);
    }
  });
  readonly #onCollected: (key: string) => void;

  /** @param onCollected called with each key of a collected holder; other holders may use the same key again */
  constructor(onCollected: (key: string) => void) {
    this.#onCollected = onCollected;
  }

  add(key: string, holders: readonly object[]): void {
    const heldKeys = holders.map(this.#keysOf);
    const holdersOfKey = heldKeys[0]?.get(key);
    if (
      holdersOfKey !== undefined &&
      holdersOfKey.length === heldKeys.length &&
      holdersOfKey.every((keyMap, holderIndex) => keyMap === heldKeys[holderIndex])
    )
      return;
    for (const keyMap of heldKeys) keyMap.set(key, heldKeys);
  }

  countOf(keyHolder: object): number {
    return this.#keysOf(keyHolder).size;
  }
}
