import { hash } from 'node:crypto';

export interface StateTable {
  readonly size: number;
  claim(key: string): { readonly state: number; readonly isNew: boolean };
}

/** Stores a 128-bit digest instead of a key of about 1 kB. */
export class LocalStateTable implements StateTable {
  readonly #numbers = new Map<string, number>();

  get size(): number {
    return this.#numbers.size;
  }

  claim(key: string): { state: number; isNew: boolean } {
    const digest = hash('md5', key, 'base64');
    const stateNumber = this.#numbers.get(digest);
    if (stateNumber !== undefined) return { state: stateNumber, isNew: false };
    const state = this.#numbers.size;
    this.#numbers.set(digest, state);
    return { state, isNew: true };
  }
}

const wordsPerKey = 4;
const emptySlot = 0;
const slotBeingWritten = -1;

/** A hash table with open addressing in memory that threads share. If two threads claim a state at once, `isNew` is true for one of them. */
export class SharedStateTable implements StateTable {
  readonly buffer: SharedArrayBuffer;
  readonly #count: Int32Array;
  /** State number plus one, or a marker of a slot that is empty or being written. */
  readonly #numbers: Int32Array;
  readonly #keys: Int32Array;
  readonly #slots: number;

  /** @param capacity the maximum number of states, or the buffer of another thread */
  constructor(capacity: number | SharedArrayBuffer) {
    const slots =
      typeof capacity === 'number' ? 2 ** Math.ceil(Math.log2(capacity * 2)) : (capacity.byteLength / 4 - 1) / 5;
    this.buffer = typeof capacity === 'number' ? new SharedArrayBuffer(4 * (1 + slots * (1 + wordsPerKey))) : capacity;
    this.#slots = slots;
    this.#count = new Int32Array(this.buffer, 0, 1);
    this.#numbers = new Int32Array(this.buffer, 4, slots);
    this.#keys = new Int32Array(this.buffer, 4 * (1 + slots));
  }

  get size(): number {
    return Atomics.load(this.#count, 0);
  }

  /** @throws RangeError when the table is full */
  claim(key: string): { state: number; isNew: boolean } {
    // Half of the slots stay empty, so that searches are short, and threads that claim at the same time find a slot.
    if (this.size > this.#slots / 2) throw new RangeError(`more than ${this.size} states do not fit in memory`);
    const digest = hash('md5', key, 'buffer');
    const digestWords = [0, 4, 8, 12].map((offset) => digest.readInt32LE(offset));
    for (let slot = digestWords[0]! & (this.#slots - 1); ; slot = (slot + 1) & (this.#slots - 1)) {
      const previousNumber = Atomics.compareExchange(this.#numbers, slot, emptySlot, slotBeingWritten);
      if (previousNumber === emptySlot) return { state: this.#write(slot, digestWords), isNew: true };
      const number = previousNumber === slotBeingWritten ? this.#awaitNumber(slot) : previousNumber;
      if (digestWords.every((digestWord, i) => this.#keys[slot * wordsPerKey + i] === digestWord))
        return { state: number - 1, isNew: false };
    }
  }

  #write(slot: number, digestWords: readonly number[]): number {
    this.#keys.set(digestWords, slot * wordsPerKey);
    const state = Atomics.add(this.#count, 0, 1);
    Atomics.store(this.#numbers, slot, state + 1);
    return state;
  }

  #awaitNumber(slot: number): number {
    for (;;) {
      const number = Atomics.load(this.#numbers, slot);
      if (number !== slotBeingWritten) return number;
    }
  }
}
