/**
 * Objects whose status is to be written. Namespaces take turns: the objects of one delay those of another by one write each. Within a
 * namespace urgent objects come first, the rest of each object once in a while. Rules only; the caller passes the time, in milliseconds.
 */
import { FairQueue, type ShareKey } from '../../../model/collections/fair-queue.ts';

/** Objects that may be queued. Beyond it the namespace with the most loses one, whose status is not written; this is reported. */
const maxQueued = 100_000;

export interface StatusQueueOptions<Item> {
  /** Between two writes of one object, unless the second is urgent; 0: none. */
  readonly restMs: number;
  readonly maxItems?: number;
  /** Default: all items have one share. */
  readonly namespaceOf?: (item: Item) => string;
}

/** Resting objects become due in so many groups, so that a thousand of them do not cause a thousand timers. */
const groupsOfRest = 40;

interface Waiting<Item> {
  readonly key: string;
  item: Item;
  readonly isUrgent: boolean;
}

export class StatusQueue<Item> {
  readonly #restMs: number;
  readonly #namespaceOf: (item: Item) => string;
  /** Keys of all objects, each of which is in one of the next three. */
  readonly #all: FairQueue<string>;
  /** To be written, in fair turns; */
  readonly #turns: FairQueue<Waiting<Item>>;
  readonly #waiting = new Map<string, Waiting<Item>>();
  /** not before a time; */
  readonly #resting = new Map<string, { readonly item: Item; readonly until: number }>();
  /** failed. */
  readonly #failed = new Map<string, Item>();
  #nextUntil = Number.POSITIVE_INFINITY;
  /** When an object was written last, as long as that matters: oldest first. */
  readonly #written = new Map<string, number>();
  /** Objects that there was no room for. */
  dropped = 0;

  constructor({ restMs, maxItems = maxQueued, namespaceOf = () => '' }: StatusQueueOptions<Item>) {
    this.#restMs = restMs;
    this.#namespaceOf = namespaceOf;
    this.#all = new FairQueue({ maxItems });
    this.#turns = new FairQueue({ maxItems, precedes: (one, other) => one.isUrgent && !other.isUrgent });
  }

  get size(): number {
    return this.#all.size;
  }

  /** Objects whose last write failed. */
  get failed(): number {
    return this.#failed.size;
  }

  /** The status of the object has changed, or may have. */
  add(key: string, item: Item, isUrgent: boolean, now: number): void {
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined && (waiting.isUrgent || !isUrgent)) {
      waiting.item = item;
      return;
    }
    if (!this.#admit(key, item)) return;
    this.#failed.delete(key);
    const until = isUrgent ? 0 : this.#restsUntil(key);
    this.#resting.delete(key);
    if (until <= now) this.#enqueue(key, item, isUrgent);
    else {
      this.#resting.set(key, { item, until });
      this.#nextUntil = Math.min(this.#nextUntil, until);
    }
  }

  /** Takes the next object that is due and `isNew` out of the queue; undefined: there is none. */
  take(now: number, isNew: (key: string) => boolean): [key: string, item: Item] | undefined {
    this.#wake(now);
    const next = this.#turns.next(({ key }) => isNew(key));
    if (next === undefined) return undefined;
    this.#waiting.delete(next.key);
    this.#all.remove(next.key);
    return [next.key, next.item];
  }

  isDue(now: number): boolean {
    this.#wake(now);
    return this.#turns.size > 0;
  }

  /** When the next resting object becomes due; undefined: none rests. */
  nextAt(now: number): number | undefined {
    this.#wake(now);
    return this.#resting.size === 0 ? undefined : this.#nextUntil;
  }

  /** The status was written. */
  written(key: string, now: number): void {
    this.#written.delete(key);
    this.#written.set(key, now);
    for (const [other, at] of this.#written) {
      if (at + this.#restMs > now) break;
      this.#written.delete(other);
    }
  }

  /** A write failed: it is due again when it is retried, or when the status changes. */
  fail(key: string, item: Item): void {
    if (!this.#waiting.has(key) && !this.#resting.has(key) && this.#admit(key, item)) this.#failed.set(key, item);
  }

  /** All that is due now counts as failed. */
  failDue(now: number): void {
    this.#wake(now);
    for (const waiting of [...this.#waiting.values()]) {
      this.#turns.remove(waiting);
      this.#failed.set(waiting.key, waiting.item);
    }
    this.#waiting.clear();
  }

  /** What failed is due, before the rest of its namespace. */
  retry(now: number): void {
    for (const [key, item] of [...this.#failed]) this.add(key, item, true, now);
  }

  /** Nothing rests: another replica may have written since. */
  wakeAll(): void {
    this.#written.clear();
    this.#wake(Number.POSITIVE_INFINITY);
  }

  /** @returns whether there is room for the object; another one may have made room */
  #admit(key: string, item: Item): boolean {
    if (this.#all.has(key)) return true;
    const dropped = this.#all.add(key, this.#shareOf(item));
    if (dropped === undefined) return true;
    this.dropped++;
    if (dropped === key) return false;
    const waiting = this.#waiting.get(dropped);
    if (waiting !== undefined) this.#turns.remove(waiting);
    for (const state of [this.#waiting, this.#resting, this.#failed]) state.delete(dropped);
    return true;
  }

  #enqueue(key: string, item: Item, isUrgent: boolean): void {
    const before = this.#waiting.get(key);
    if (before !== undefined) this.#turns.remove(before);
    const waiting = { key, item, isUrgent };
    this.#waiting.set(key, waiting);
    this.#turns.add(waiting, this.#shareOf(item));
  }

  #shareOf(item: Item): ShareKey {
    return [this.#namespaceOf(item)];
  }

  #restsUntil(key: string): number {
    const written = this.#written.get(key);
    if (written === undefined) return 0;
    const group = Math.max(this.#restMs / groupsOfRest, 1);
    return Math.ceil((written + this.#restMs) / group) * group;
  }

  #wake(now: number): void {
    if (this.#nextUntil > now) return;
    let next = Number.POSITIVE_INFINITY;
    for (const [key, { item, until }] of this.#resting) {
      if (until > now) {
        next = Math.min(next, until);
        continue;
      }
      this.#resting.delete(key);
      this.#enqueue(key, item, false);
    }
    this.#nextUntil = next;
  }
}
