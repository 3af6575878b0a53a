import type { Encodable } from '../../networking/messages/resource.ts';

/** How many are made and encoded at a time, at the most: a few milliseconds of work. */
const atATime = 8;

/** What lists of many proxies share, made a little at a time by whichever of them has its turn. */
export class MakingAhead {
  readonly #parts: Iterator<Encodable | undefined>;
  readonly #encode: (part: Encodable) => void;
  #isDone = false;

  constructor(parts: Iterator<Encodable | undefined>, encode: (part: Encodable) => void) {
    this.#parts = parts;
    this.#encode = encode;
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  /**
   * Makes some, or as much of what takes long as there is until it rests (undefined). May throw: then there is no more of it, and
   * whoever makes a list meets the same.
   *
   * @returns whether there is more to make
   */
  piece(): boolean {
    for (let made = 0; made < atATime && !this.#isDone; made++) {
      try {
        const { done, value } = this.#parts.next();
        if (done) this.#isDone = true;
        else if (value === undefined) break;
        else this.#encode(value);
      } catch (error) {
        this.#isDone = true;
        throw error;
      }
    }
    return !this.#isDone;
  }
}
