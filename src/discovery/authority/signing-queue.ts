/**
 * Who is signed for next: the certificate with the shortest remaining life first, so that a storm of those who could wait
 * cuts nobody off. Bounded for all together, for each connection and for each identity (spec/identity.md §8, "herd"): a workload may have
 * as many connections as it likes, and with nothing in its hands it comes before everybody who renews.
 */

export interface Waiting<T> {
  readonly item: T;
  /** When what the caller has now ends, Unix time in milliseconds; 0: it has nothing. */
  readonly endsAt: number;
  /** Whose share it is: a connection. */
  readonly client: string;
  /** Whose certificate it is to be. */
  readonly identity: string;
}

export interface QueueLimits {
  readonly mostWaiting: number;
  readonly mostOfClient: number;
  /** Replicas of a workload that come at once are many, too. */
  readonly mostOfIdentity: number;
}

export class SigningQueue<T> {
  readonly #limits: QueueLimits;
  /** The last is the next: most urgent at the end. Equal ones in the order in which they came. */
  readonly #waiting: Waiting<T>[] = [];
  readonly #ofClient = new Shares();
  readonly #ofIdentity = new Shares();

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  get length(): number {
    return this.#waiting.length;
  }

  /** @returns who is not taken: the newcomer, or one that is less urgent; undefined when there is room for all */
  add(newcomer: Waiting<T>): Waiting<T> | undefined {
    const { client, identity, endsAt } = newcomer;
    const { mostOfClient, mostOfIdentity, mostWaiting } = this.#limits;
    if (this.#ofClient.of(client) >= mostOfClient || this.#ofIdentity.of(identity) >= mostOfIdentity) return newcomer;
    this.#waiting.splice(this.#placeOf(endsAt), 0, newcomer);
    this.#count(newcomer, 1);
    return this.#waiting.length > mostWaiting ? this.#removeAt(0) : undefined;
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
    this.#count(removed!, -1);
    return removed!;
  }

  #count({ client, identity }: Waiting<T>, more: number): void {
    this.#ofClient.add(client, more);
    this.#ofIdentity.add(identity, more);
  }
}

/** How many there are of each. */
class Shares {
  readonly #counts = new Map<string, number>();

  of(whose: string): number {
    return this.#counts.get(whose) ?? 0;
  }

  add(whose: string, more: number): void {
    const count = this.of(whose) + more;
    if (count === 0) this.#counts.delete(whose);
    else this.#counts.set(whose, count);
  }
}
