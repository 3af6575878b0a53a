import type { Deviation } from './check.ts';
import type { Message } from './message.ts';

export const maxAcceptedMessages = 200;

/** Keeps the messages around the first deviation of a trace, or its first messages if there is no deviation. */
export class MessageWindow {
  readonly #contextSize: number;
  #messages: Message[] = [];
  readonly #deviations: Deviation[] = [];
  #seenCount = 0;
  /** Removed messages before the first deviation. */
  #removed = 0;
  #remaining: number | undefined;

  /** @param contextSize messages to keep before the first deviation, and as many after it */
  constructor(contextSize: number) {
    this.#contextSize = contextSize;
  }

  /** Must be called for each message in order, with its deviations. */
  add(message: Message, deviations: readonly Deviation[]): void {
    this.#seenCount++;
    if (this.#remaining === undefined && deviations.length === 0) this.#addBeforeDeviation(message);
    else this.#addFromDeviation(message, deviations);
  }

  get messages(): readonly Message[] {
    return this.#remaining === undefined ? this.#messages.slice(0, maxAcceptedMessages) : this.#messages;
  }

  get deviations(): readonly Deviation[] {
    return this.#deviations;
  }

  get omittedCounts(): { readonly earlier: number; readonly later: number } {
    const earlier = this.#remaining === undefined ? 0 : this.#removed;
    return { earlier, later: this.#seenCount - earlier - this.messages.length };
  }

  #addBeforeDeviation(message: Message): void {
    this.#messages.push(message);
    // A diagram of an accepted run shows its first messages; one of a later deviation needs the last messages.
    if (this.#messages.length > maxAcceptedMessages + 2 * this.#contextSize + 1)
      this.#messages.splice(maxAcceptedMessages, this.#contextSize + 1);
  }

  #addFromDeviation(message: Message, deviations: readonly Deviation[]): void {
    if (this.#remaining === undefined) {
      this.#messages = this.#contextSize === 0 ? [] : this.#messages.slice(-this.#contextSize);
      this.#removed = this.#seenCount - 1 - this.#messages.length;
      this.#remaining = this.#contextSize + 1;
    }
    if (this.#remaining === 0) return;
    this.#remaining--;
    this.#messages.push(message);
    this.#deviations.push(...deviations);
  }
}
