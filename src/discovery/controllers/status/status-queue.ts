/**
 * Queue of objects whose status is due. Namespaces are served in turn, one write each. Within a namespace, urgent objects come first. Others have a
 * minimum interval between writes. Pure: the caller passes the time in milliseconds.
 */
import { FairQueue, type ShareKey } from '../../../model/collections/fair-queue.ts';

/** If the queue is full, an object of the largest namespace is dropped and counted, and its status is not written. */
const maxQueued = 100_000;

export interface StatusQueueOptions<Item> {
  /** Minimum interval between writes of an object, unless the second one is urgent. 0 means none. */
  readonly pauseMs: number;
  readonly maxItems?: number;
  /** By default, all items have one share. */
  readonly namespaceOf?: (item: Item) => string;
}

/** Delays end in this many groups, which limits the number of timers. */
const pauseGroups = 40;

interface Waiting<Item> {
  readonly key: string;
  item: Item;
  readonly isUrgent: boolean;
}

export class StatusQueue<Item> {
  readonly #pauseMs: number;
  readonly #namespaceOf: (item: Item) => string;
  /** Keys of due, delayed and failed objects. */
  readonly #all: FairQueue<string>;
  /** Due objects in fair order. */
  readonly #waitingQueue: FairQueue<Waiting<Item>>;
  readonly #waiting = new Map<string, Waiting<Item>>();
  /** Delayed objects, with the end of their delay. */
  readonly #pausing = new Map<string, { readonly item: Item; readonly until: number }>();
  readonly #failed = new Map<string, Item>();
  #nextUntil = Number.POSITIVE_INFINITY;
  /** Time of the last write of each object, until its minimum interval ends, oldest first. */
  readonly #written = new Map<string, number>();
  /** Objects dropped because the queue was full. */
  dropped = 0;

  constructor({ pauseMs, maxItems = maxQueued, namespaceOf = () => '' }: StatusQueueOptions<Item>) {
    this.#pauseMs = pauseMs;
    this.#namespaceOf = namespaceOf;
    this.#all = new FairQueue({ maxItems });
    this.#waitingQueue = new FairQueue({ maxItems, precedes: (one, other) => one.isUrgent && !other.isUrgent });
  }

  get size(): number {
    return this.#all.size;
  }

  get failed(): number {
    return this.#failed.size;
  }

  /** Call when the status of the object may have changed. */
  add(key: string, item: Item, isUrgent: boolean, now: number): void {
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined && (waiting.isUrgent || !isUrgent)) {
      waiting.item = item;
      return;
    }
    if (!this.#admit(key, item)) return;
    this.#failed.delete(key);
    const until = isUrgent ? 0 : this.#pausedUntil(key);
    this.#pausing.delete(key);
    if (until <= now) this.#enqueue(key, item, isUrgent);
    else {
      this.#pausing.set(key, { item, until });
      this.#nextUntil = Math.min(this.#nextUntil, until);
    }
  }

  /** Removes and returns the next due object that is `isNew`. `undefined` if none exists. */
  take(now: number, isNew: (key: string) => boolean): [key: string, item: Item] | undefined {
    this.#wake(now);
    const next = this.#waitingQueue.next(({ key }) => isNew(key));
    if (next === undefined) return undefined;
    this.#waiting.delete(next.key);
    this.#all.remove(next.key);
    return [next.key, next.item];
  }

  isDue(now: number): boolean {
    this.#wake(now);
    return this.#waitingQueue.size > 0;
  }

  /** `undefined` if no object is delayed. */
  nextAt(now: number): number | undefined {
    this.#wake(now);
    return this.#pausing.size === 0 ? undefined : this.#nextUntil;
  }

  written(key: string, now: number): void {
    this.#written.delete(key);
    this.#written.set(key, now);
    for (const [other, writtenAt] of this.#written) {
      if (writtenAt + this.#pauseMs > now) break;
      this.#written.delete(other);
    }
  }

  /** The object becomes due on a retry or a change. */
  fail(key: string, item: Item): void {
    if (!this.#waiting.has(key) && !this.#pausing.has(key) && this.#admit(key, item)) this.#failed.set(key, item);
  }

  /** Call when a run is aborted. */
  failDue(now: number): void {
    this.#wake(now);
    for (const waiting of [...this.#waiting.values()]) {
      this.#waitingQueue.remove(waiting);
      this.#failed.set(waiting.key, waiting.item);
    }
    this.#waiting.clear();
  }

  /** Makes failed objects due, and puts them first in their namespaces. */
  retry(now: number): void {
    for (const [key, item] of [...this.#failed]) this.add(key, item, true, now);
  }

  /** Ends all delays, because another replica may have written. */
  wakeAll(): void {
    this.#written.clear();
    this.#wake(Number.POSITIVE_INFINITY);
  }

  /** @returns whether the object was added. Another object may have been dropped instead. */
  #admit(key: string, item: Item): boolean {
    if (this.#all.has(key)) return true;
    const dropped = this.#all.add(key, this.#shareOf(item));
    if (dropped === undefined) return true;
    this.dropped++;
    if (dropped === key) return false;
    const waiting = this.#waiting.get(dropped);
    if (waiting !== undefined) this.#waitingQueue.remove(waiting);
    for (const state of [this.#waiting, this.#pausing, this.#failed]) state.delete(dropped);
    return true;
  }

  #enqueue(key: string, item: Item, isUrgent: boolean): void {
    const replaced = this.#waiting.get(key);
    if (replaced !== undefined) this.#waitingQueue.remove(replaced);
    const waiting = { key, item, isUrgent };
    this.#waiting.set(key, waiting);
    this.#waitingQueue.add(waiting, this.#shareOf(item));
  }

  #shareOf(item: Item): ShareKey {
    return [this.#namespaceOf(item)];
  }

  #pausedUntil(key: string): number {
    const written = this.#written.get(key);
    if (written === undefined) return 0;
    const group = Math.max(this.#pauseMs / pauseGroups, 1);
    return Math.ceil((written + this.#pauseMs) / group) * group;
  }

  #wake(now: number): void {
    if (this.#nextUntil > now) return;
    let next = Number.POSITIVE_INFINITY;
    for (const [key, { item, until }] of this.#pausing) {
      if (until > now) {
        next = Math.min(next, until);
        continue;
      }
      this.#pausing.delete(key);
      this.#enqueue(key, item, false);
    }
    this.#nextUntil = next;
  }
}
