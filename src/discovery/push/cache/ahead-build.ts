import type { PartToEncode } from '../../../networking/messages/resource.ts';

const maxPartsPerPiece = 8;
/** One virtual host may have thousands of routes. */
const maxPieceMs = 2;

/** Builds parts that the lists of many proxies share. */
export class AheadBuild {
  readonly #partsToEncode: Iterator<PartToEncode | undefined>;
  readonly #encode: (part: PartToEncode) => void;
  readonly #now: () => number;
  #isDone = false;

  constructor(
    partsToEncode: Iterator<PartToEncode | undefined>,
    encode: (part: PartToEncode) => void,
    now: () => number = () => performance.now(),
  ) {
    this.#partsToEncode = partsToEncode;
    this.#encode = encode;
    this.#now = now;
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  /** @returns whether there is more to build */
  buildPiece(): boolean {
    const startedAt = this.#now();
    for (let builtCount = 0; builtCount < maxPartsPerPiece && !this.#isDone; builtCount++) {
      if (builtCount > 0 && this.#now() - startedAt > maxPieceMs) break;
      try {
        const { done, value } = this.#partsToEncode.next();
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
