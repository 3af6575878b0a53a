import type { AheadPart } from '../../../networking/messages/resource.ts';

/** How many are made and encoded at a time, at the most. */
const atATime = 8;
/** No further one begins after this time: one virtual host may have thousands of routes. */
const maxPieceMs = 2;

/** What lists of many proxies share, made a little at a time by whichever of them has its turn. */
export class MakingAhead {
  readonly #parts: Iterator<AheadPart | undefined>;
  readonly #encode: (part: AheadPart) => void;
  readonly #now: () => number;
  #isDone = false;

  /** @param now milliseconds, of any beginning */
  constructor(
    parts: Iterator<AheadPart | undefined>,
    encode: (part: AheadPart) => void,
    now: () => number = () => performance.now(),
  ) {
    this.#parts = parts;
    this.#encode = encode;
    this.#now = now;
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
    const began = this.#now();
    for (let made = 0; made < atATime && !this.#isDone; made++) {
      if (made > 0 && this.#now() - began > maxPieceMs) break;
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
