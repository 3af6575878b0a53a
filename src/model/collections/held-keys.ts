/**
 * Keys of things that are of use as long as all their holders are there: told when one of them is gone.
 *
 * A holder is registered once, whatever comes and goes with it: what is registered for an object stays until that object goes,
 * and one that stays for weeks would gather a registration for each key that it ever had.
 */
import { onceFor } from './once-for.ts';

/** Keys of one holder, each with those of all its holders. */
type Keys = Map<string, readonly Keys[]>;

export class HeldKeys {
  readonly #keysOf = onceFor((holder: object): Keys => {
    const keys: Keys = new Map();
    this.#holders.register(holder, keys);
    return keys;
  });
  readonly #holders = new FinalizationRegistry<Keys>((keys) => {
    for (const [key, all] of keys) {
      // The key may have come again, with other holders.
      for (const one of all) if (one.get(key) === all) one.delete(key);
      this.#gone(key);
    }
  });
  readonly #gone: (key: string) => void;

  /** @param gone a holder of this key is; there may be others by now that hold the same one */
  constructor(gone: (key: string) => void) {
    this.#gone = gone;
  }

  hold(key: string, holders: readonly object[]): void {
    const all = holders.map(this.#keysOf);
    const known = all[0]?.get(key);
    if (known !== undefined && known.length === all.length && known.every((one, at) => one === all[at])) return;
    for (const one of all) one.set(key, all);
  }

  /** How many keys are known of a holder. */
  countOf(holder: object): number {
    return this.#keysOf(holder).size;
  }
}
