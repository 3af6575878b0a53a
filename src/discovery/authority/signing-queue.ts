/**
 * Who is signed for next: the certificate with the shortest remaining life first, so that a storm of those who could wait
 * cuts nobody off. Bounded for all together and for each connection (spec/identity.md §8, "herd"). A workload may have as many connections
 * as it likes, a tenant as many service accounts, and with nothing in its hands each comes before everybody who renews: where there is no
 * room, it is made among those of the namespace with the most. As long as there is room, a namespace may have all of it.
 */
import { workloadIdentityOf } from '../../identity/spiffe-id.ts';
import { Shares } from '../../model/collections/shares.ts';

export interface Waiting<T> {
  readonly item: T;
  /** When what the caller has now ends, Unix time in milliseconds; 0: it has nothing. */
  readonly endsAt: number;
  /** Whose share it is: a connection. */
  readonly client: string;
  /** Whose certificate it is to be. */
  readonly identity: string;
}

interface Held<T> extends Waiting<T> {
  readonly namespace: string;
}

export interface QueueLimits {
  readonly mostWaiting: number;
  readonly mostOfClient: number;
}

export class SigningQueue<T> {
  readonly #limits: QueueLimits;
  /** The last is the next: most urgent at the end. Equal ones in the order in which they came. */
  readonly #waiting: Held<T>[] = [];
  readonly #ofClient = new Shares();
  readonly #ofNamespace = new Shares();

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  get length(): number {
    return this.#waiting.length;
  }

  /** @returns who is not taken: the newcomer, or another one; undefined when there is room for all */
  add(newcomer: Waiting<T>): Waiting<T> | undefined {
    const { mostOfClient, mostWaiting } = this.#limits;
    if (this.#ofClient.of(newcomer.client) >= mostOfClient) return newcomer;
    const held = { ...newcomer, namespace: namespaceOf(newcomer.identity) };
    this.#waiting.splice(this.#placeOf(held.endsAt), 0, held);
    this.#count(held, 1);
    return this.#waiting.length > mostWaiting ? this.#removeAt(this.#firstToGo()) : undefined;
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

  /** Of the namespace with the most, or of several that have as many, the one that can wait longest. */
  #firstToGo(): number {
    const most = this.#ofNamespace.most;
    return this.#waiting.findIndex(({ namespace }) => this.#ofNamespace.of(namespace) === most);
  }

  #removeAt(at: number): Waiting<T> {
    const [removed] = this.#waiting.splice(at, 1);
    this.#count(removed!, -1);
    return removed!;
  }

  #count({ client, namespace }: Held<T>, more: number): void {
    this.#ofClient.add(client, more);
    this.#ofNamespace.add(namespace, more);
  }
}

function namespaceOf(identity: string): string {
  return workloadIdentityOf(identity)?.namespace ?? identity;
}
