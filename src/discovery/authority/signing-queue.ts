/**
 * Who is signed for next: the certificate with the shortest remaining life first, so that a storm of those who could wait
 * cuts nobody off. Bounded for all together and for each connection (spec/identity.md §8, "herd").
 */

export interface Waiting<T> {
  readonly item: T;
  /** When what the caller has now ends, Unix time in milliseconds; 0: it has nothing. */
  readonly endsAt: number;
  /** Whose share it is: a connection. */
  readonly client: string;
}

export interface QueueLimits {
  readonly mostWaiting: number;
  readonly mostOfClient: number;
}

export class SigningQueue<T> {
  readonly #limits: QueueLimits;
  /** The last is the next: most urgent at the end. Equal ones in the order in which they came. */
  readonly #waiting: Waiting<T>[] = [];
  readonly #ofClient = new Map<string, number>();

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  get length(): number {
    return this.#waiting.length;
  }

  /** @returns who is not taken: the newcomer, or one that is less urgent; undefined when there is room for all */
  add(newcomer: Waiting<T>): Waiting<T> | undefined {
    if ((this.#ofClient.get(newcomer.client) ?? 0) >= this.#limits.mostOfClient) return newcomer;
    this.#waiting.splice(this.#placeOf(newcomer.endsAt), 0, newcomer);
    this.#count(newcomer.client, 1);
    return this.#waiting.length > this.#limits.mostWaiting ? this.#removeAt(0) : undefined;
  }

  next(): Waiting<T> | undefined {
    return this.#waiting.length === 0 ? undefined : this.#removeAt(this.#waiting.length - 1);
  }

  /** For callers that are gone. */
  remove(item: T): void {
    const at = this.#waiting.findIndex((waiting) => waiting.item === item);
    if (at >= 0) this.#removeAt(at);
  }

  /** After all that are more urgent or came before: the first place from which on everything ends earlier, or as early. */
  #placeOf(endsAt: number): number {
    let low = 0;
    let high = this.#waiting.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#waiting[middle]!.endsAt > endsAt) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #removeAt(at: number): Waiting<T> {
    const [removed] = this.#waiting.splice(at, 1);
    this.#count(removed!.client, -1);
    return removed!;
  }

  #count(client: string, more: number): void {
    const count = (this.#ofClient.get(client) ?? 0) + more;
    if (count === 0) this.#ofClient.delete(client);
    else this.#ofClient.set(client, count);
  }
}
