import type { Departure } from './check.ts';
import type { Message } from './message.ts';

/** Messages that are kept of a run without a departure. */
export const wholeRun = 200;

/** Keeps those messages of a trace that a picture of its first departure needs, or its first ones when there is none. */
export class MessageWindow {
  readonly #around: number;
  #messages: Message[] = [];
  readonly #departures: Departure[] = [];
  #seen = 0;
  /** Messages before the first departure that are not kept. */
  #left = 0;
  #stillToCome: number | undefined;

  /** @param around messages to keep before the first departure, and as many after it. */
  constructor(around: number) {
    this.#around = around;
  }

  /** To be told of each message in order, with the departures that it is. */
  add(message: Message, departures: readonly Departure[]): void {
    this.#seen++;
    if (this.#stillToCome === undefined && departures.length === 0) this.#before(message);
    else this.#fromDeparture(message, departures);
  }

  get messages(): readonly Message[] {
    return this.#stillToCome === undefined ? this.#messages.slice(0, wholeRun) : this.#messages;
  }

  /** Those of the messages that are kept. */
  get departures(): readonly Departure[] {
    return this.#departures;
  }

  /** How many messages came before those that are kept, and how many after. */
  get leftOut(): { readonly before: number; readonly after: number } {
    const before = this.#stillToCome === undefined ? 0 : this.#left;
    return { before, after: this.#seen - before - this.messages.length };
  }

  #before(message: Message): void {
    this.#messages.push(message);
    // The first ones are the picture of an accepted run; the last ones are needed when it departs after all.
    if (this.#messages.length > wholeRun + 2 * this.#around + 1) this.#messages.splice(wholeRun, this.#around + 1);
  }

  #fromDeparture(message: Message, departures: readonly Departure[]): void {
    if (this.#stillToCome === undefined) {
      this.#messages = this.#around === 0 ? [] : this.#messages.slice(-this.#around);
      this.#left = this.#seen - 1 - this.#messages.length;
      this.#stillToCome = this.#around + 1;
    }
    if (this.#stillToCome === 0) return;
    this.#stillToCome--;
    this.#messages.push(message);
    this.#departures.push(...departures);
  }
}
