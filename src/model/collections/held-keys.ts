/** Tracks keys that are useful only while all objects that hold them exist. Reports a key when one of these objects is garbage-collected. */
import { memoizeByObject } from './memoize-by-object.ts';

type KeyList = Map<string, readonly KeyList[]>;

export class HeldKeys {
  readonly #keysOf = memoizeByObject((owner: object): KeyList => {
    const keys: KeyList = new Map();
    this.#owners.register(owner, keys);
    return keys;
  });
  readonly #owners = new FinalizationRegistry<KeyList>((keys) => {
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
    const ownersOfKey = heldKeys[0]?.get(key);
    if (
      ownersOfKey !== undefined &&
      ownersOfKey.length === heldKeys.length &&
      ownersOfKey.every((keyMap, ownerIndex) => keyMap === heldKeys[ownerIndex])
    )
      return;
    for (const keyMap of heldKeys) keyMap.set(key, heldKeys);
  }

  countOf(owner: object): number {
    return this.#keysOf(owner).size;
  }
}
