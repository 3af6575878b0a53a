import type { Departure } from './check.ts';
import type { Message } from './message.ts';

export const wholeRun = 200;

/** Keeps the messages around the first deviation of a trace, or its first messages if there is no deviation. */
export class MessageWindow {
  readonly #around: number;
  #messages: Message[] = [];
  readonly #departures: Departure[] = [];
  #seen = 0;
  /** Removed messages before the first deviation. */
  #left = 0;
  #stillToCome: number | undefined;

  /** @param around messages to keep before the first deviation, and as many after it */
  constructor(around: number) {
    this.#around = around;
  }

  /** Must be called for each message in order, with its deviations. */
  add(message: Message, departures: readonly Departure[]): void {
    this.#seen++;
    if (this.#stillToCome === undefined && departures.length === 0) this.#before(message);
    else this.#fromDeparture(message, departures);
  }

  get messages(): readonly Message[] {
    return this.#stillToCome === undefined ? this.#messages.slice(0, wholeRun) : this.#messages;
  }

  get departures(): readonly Departure[] {
    return this.#departures;
  }

  get leftOut(): { readonly before: number; readonly after: number } {
    const before = this.#stillToCome === undefined ? 0 : this.#left;
    return { before, after: this.#seen - before - this.messages.length };
  }

  #before(message: Message): void {
    this.#messages.push(message);
    // A diagram of an accepted run shows its first messages; one of a later deviation needs the last messages.
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
