/** Namespaces are served in turn, one write each. Within a namespace, urgent objects come first. Others have a minimum interval between writes. */
import { FairQueue, type ShareKey } from '../../../model/collections/fair-queue.ts';

/** If the queue is full, an object of the largest namespace is dropped and counted, and its status is not written. */
const maxQueuedItems = 100_000;

export interface StatusQueueOptions<Item> {
  /** Minimum interval between non-urgent writes of an object. 0 means none. */
  readonly pauseMs: number;
  readonly maxItems?: number;
  /** By default, all items have one share. */
  readonly namespaceOf?: (item: Item) => string;
}

/** Limits the number of timers. */
const pauseGroups = 40;

interface WaitingItem<Item> {
  readonly key: string;
  item: Item;
  readonly isUrgent: boolean;
}

export class StatusQueue<Item> {
  readonly #pauseMs: number;
  readonly #namespaceOf: (item: Item) => string;
  readonly #allKeys: FairQueue<string>;
  readonly #waitingQueue: FairQueue<WaitingItem<Item>>;
  readonly #waitingEntries = new Map<string, WaitingItem<Item>>();
  /** Delayed objects, with the end of their delay. */
  readonly #delayedItems = new Map<string, { readonly item: Item; readonly endsAt: number }>();
  readonly #failedItems = new Map<string, Item>();
  #nextDelayEnd = Number.POSITIVE_INFINITY;
  /** Contains objects until their minimum interval ends, oldest first. */
  readonly #writtenAtByKey = new Map<string, number>();
  /** Objects are dropped if the queue is full. */
  droppedCount = 0;

  constructor({ pauseMs, maxItems = maxQueuedItems, namespaceOf = () => '' }: StatusQueueOptions<Item>) {
    this.#pauseMs = pauseMs;
    this.#namespaceOf = namespaceOf;
    this.#allKeys = new FairQueue({ maxItems });
    this.#waitingQueue = new FairQueue({ maxItems, precedes: (one, other) => one.isUrgent && !other.isUrgent });
  }

  get size(): number {
    return this.#allKeys.size;
  }

  get failedCount(): number {
    return this.#failedItems.size;
  }

  add(key: string, item: Item, isUrgent: boolean, now: number): void {
    const waitingEntry = this.#waitingEntries.get(key);
    if (waitingEntry !== undefined && (waitingEntry.isUrgent || !isUrgent)) {
      waitingEntry.item = item;
      return;
    }
    if (!this.#admit(key, item)) return;
    this.#failedItems.delete(key);
    const pausedUntil = isUrgent ? 0 : this.#pausedUntil(key);
    this.#delayedItems.delete(key);
    if (pausedUntil <= now) this.#enqueue(key, item, isUrgent);
    else {
      this.#delayedItems.set(key, { item, endsAt: pausedUntil });
      this.#nextDelayEnd = Math.min(this.#nextDelayEnd, pausedUntil);
    }
  }

  /** `undefined` if no due object is `isNew`. */
  dequeueNext(now: number, isNew: (key: string) => boolean): [key: string, item: Item] | undefined {
    this.#enqueueDue(now);
    const next = this.#waitingQueue.takeNext(({ key }) => isNew(key));
    if (next === undefined) return undefined;
    this.#waitingEntries.delete(next.key);
    this.#allKeys.remove(next.key);
    return [next.key, next.item];
  }

  isDue(now: number): boolean {
    this.#enqueueDue(now);
    return this.#waitingQueue.size > 0;
  }

  nextDueAt(now: number): number | undefined {
    this.#enqueueDue(now);
    return this.#delayedItems.size === 0 ? undefined : this.#nextDelayEnd;
  }

  markWritten(key: string, now: number): void {
    this.#writtenAtByKey.delete(key);
    this.#writtenAtByKey.set(key, now);
    for (const [other, writtenAt] of this.#writtenAtByKey) {
      if (writtenAt + this.#pauseMs > now) break;
      this.#writtenAtByKey.delete(other);
    }
  }

  /** The object becomes due on a retry or a change. */
  addFailed(key: string, item: Item): void {
    if (!this.#waitingEntries.has(key) && !this.#delayedItems.has(key) && this.#admit(key, item))
      this.#failedItems.set(key, item);
  }

  /** Called when a run is aborted. */
  failDueItems(now: number): void {
    this.#enqueueDue(now);
    for (const waitingEntry of [...this.#waitingEntries.values()]) {
      this.#waitingQueue.remove(waitingEntry);
      this.#failedItems.set(waitingEntry.key, waitingEntry.item);
    }
    this.#waitingEntries.clear();
  }

  /** Makes failed objects due, and puts them first in their namespaces. */
  retry(now: number): void {
    for (const [key, item] of [...this.#failedItems]) this.add(key, item, true, now);
  }

  /** Ends all delays, because another replica may have written. */
  enqueueDelayed(): void {
    this.#writtenAtByKey.clear();
    this.#enqueueDue(Number.POSITIVE_INFINITY);
  }

  /**
   * Another object may have been dropped instead.
   *
   * @returns whether the object was added
   */
  #admit(key: string, item: Item): boolean {
    if (this.#allKeys.has(key)) return true;
    const droppedKey = this.#allKeys.add(key, this.#shareOf(item));
    if (droppedKey === undefined) return true;
    this.droppedCount++;
    if (droppedKey === key) return false;
    const waitingEntry = this.#waitingEntries.get(droppedKey);
    if (waitingEntry !== undefined) this.#waitingQueue.remove(waitingEntry);
    for (const state of [this.#waitingEntries, this.#delayedItems, this.#failedItems]) state.delete(droppedKey);
    return true;
  }

  #enqueue(key: string, item: Item, isUrgent: boolean): void {
    const replacedEntry = this.#waitingEntries.get(key);
    if (replacedEntry !== undefined) this.#waitingQueue.remove(replacedEntry);
    const waitingEntry = { key, item, isUrgent };
    this.#waitingEntries.set(key, waitingEntry);
    this.#waitingQueue.add(waitingEntry, this.#shareOf(item));
  }

  #shareOf(item: Item): ShareKey {
    return [this.#namespaceOf(item)];
  }

  #pausedUntil(key: string): number {
    const writtenAt = this.#writtenAtByKey.get(key);
    if (writtenAt === undefined) return 0;
    const group = Math.max(this.#pauseMs / pauseGroups, 1);
    return Math.ceil((writtenAt + this.#pauseMs) / group) * group;
  }

  #enqueueDue(now: number): void {
    if (this.#nextDelayEnd > now) return;
    let next = Number.POSITIVE_INFINITY;
    for (const [key, { item, endsAt }] of this.#delayedItems) {
      if (endsAt > now) {
        next = Math.min(next, endsAt);
        continue;
      }
      this.#delayedItems.delete(key);
      this.#enqueue(key, item, false);
    }
    this.#nextDelayEnd = next;
  }
}
