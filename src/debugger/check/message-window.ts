import type { Deviation } from './check.ts';
import type { Message } from './message.ts';

export const maxAcceptedMessages = 200;

/** Keeps the messages around the first deviation of a trace, or its first messages if there is no deviation. */
export class MessageWindow {
  readonly #contextSize: number;
  #messages: Message[] = [];
  readonly #deviations: Deviation[] = [];
  #messageCount = 0;
  #removedCount = 0;
  #remainingCount: number | undefined;

  /** @param contextSize messages to keep before the first deviation, and as many after it */
  constructor(contextSize: number) {
    this.#contextSize = contextSize;
  }

  /** Must be called for each message in order, with its deviations. */
  add(message: Message, deviations: readonly Deviation[]): void {
    this.#messageCount++;
    if (this.#remainingCount === undefined && deviations.length === 0) this.#addBeforeDeviation(message);
    else this.#addFromDeviation(message, deviations);
  }

  get messages(): readonly Message[] {
    return this.#remainingCount === undefined ? this.#messages.slice(0, maxAcceptedMessages) : this.#messages;
  }

  get deviations(): readonly Deviation[] {
    return this.#deviations;
  }

  get omittedCounts(): { readonly earlier: number; readonly later: number } {
    const earlierCount = this.#remainingCount === undefined ? 0 : this.#removedCount;
    return { earlier: earlierCount, later: this.#messageCount - earlierCount - this.messages.length };
  }

  #addBeforeDeviation(message: Message): void {
    this.#messages.push(message);
    // Keeps the first messages for the diagram of an accepted run, and the last ones for that of a later deviation.
    if (this.#messages.length > maxAcceptedMessages + 2 * this.#contextSize + 1)
      this.#messages.splice(maxAcceptedMessages, this.#contextSize + 1);
  }

  #addFromDeviation(message: Message, deviations: readonly Deviation[]): void {
    if (this.#remainingCount === undefined) {
      this.#messages = this.#contextSize === 0 ? [] : this.#messages.slice(-this.#contextSize);
      this.#removedCount = this.#messageCount - 1 - this.#messages.length;
      this.#remainingCount = this.#contextSize + 1;
    }
    if (this.#remainingCount === 0) return;
    this.#remainingCount--;
    this.#messages.push(message);
    this.#deviations.push(...deviations);
  }
}
