/**
 * Whose status is to be written: what is urgent first, of the rest each object once in a while. Rules only; the clock is that of whoever
 * asks, in milliseconds.
 */

/** Objects that may be queued: where a cluster has more, some statuses are not written, which is told. */
const mostQueued = 100_000;

export interface StatusQueueOptions {
  /** Between two writes of one object, unless the second is urgent; 0: none. */
  readonly restMs: number;
  readonly most?: number;
}

/** Those that rest become due in so many groups, so that a thousand of them do not wake anybody a thousand times. */
const groupsOfRest = 40;

export class StatusQueue<Item> {
  readonly #restMs: number;
  readonly #most: number;
  /** By key, which is in one of these four: to be written, */
  readonly #urgent = new Map<string, Item>();
  readonly #due = new Map<string, Item>();
  /** not before a time, */
  readonly #resting = new Map<string, { readonly item: Item; readonly until: number }>();
  /** tried in vain. */
  readonly #failed = new Map<string, Item>();
  #nextUntil = Number.POSITIVE_INFINITY;
  /** When it was written last, of those of which that matters still: oldest first. */
  readonly #written = new Map<string, number>();
  /** Objects that there was no room for. */
  dropped = 0;

  constructor({ restMs, most = mostQueued }: StatusQueueOptions) {
    this.#restMs = restMs;
    this.#most = most;
  }

  get size(): number {
    return this.#urgent.size + this.#due.size + this.#resting.size + this.#failed.size;
  }

  /** How many were tried in vain. */
  get failed(): number {
    return this.#failed.size;
  }

  /** Something about the object is, or may be, to be written. */
  add(key: string, item: Item, isUrgent: boolean, now: number): void {
    const wasUrgent = this.#urgent.has(key);
    const wasDue = this.#due.has(key);
    const isKnown = wasUrgent || wasDue || this.#failed.delete(key) || this.#resting.has(key);
    if (!isKnown && this.size >= this.#most) {
      this.dropped++;
      return;
    }
    if (isUrgent || wasUrgent) {
      this.#due.delete(key);
      this.#resting.delete(key);
      this.#urgent.set(key, item);
    } else {
      const until = wasDue ? 0 : this.#restsUntil(key);
      if (until <= now) {
        this.#resting.delete(key);
        this.#due.set(key, item);
      } else {
        this.#resting.set(key, { item, until });
        this.#nextUntil = Math.min(this.#nextUntil, until);
      }
    }
  }

  /** What is due and `isNew`, out of the queue; undefined: nothing. */
  take(now: number, isNew: (key: string) => boolean): [key: string, item: Item] | undefined {
    this.#wake(now);
    for (const group of [this.#urgent, this.#due]) {
      for (const [key, item] of group) {
        if (!isNew(key)) continue;
        group.delete(key);
        return [key, item];
      }
    }
    return undefined;
  }

  isDue(now: number): boolean {
    this.#wake(now);
    return this.#urgent.size + this.#due.size > 0;
  }

  /** When something becomes due that is not yet; undefined: nothing rests. */
  nextAt(now: number): number | undefined {
    this.#wake(now);
    return this.#resting.size === 0 ? undefined : this.#nextUntil;
  }

  /** The status is in force. */
  written(key: string, now: number): void {
    this.#written.delete(key);
    this.#written.set(key, now);
    for (const [other, at] of this.#written) {
      if (at + this.#restMs > now) break;
      this.#written.delete(other);
    }
  }

  /** A status was tried in vain: it is due again when somebody asks for that, or when it is another one. */
  fail(key: string, item: Item): void {
    if (!this.#urgent.has(key) && !this.#due.has(key) && !this.#resting.has(key)) this.#failed.set(key, item);
  }

  /** All that is due now counts as tried in vain. */
  failDue(now: number): void {
    this.#wake(now);
    for (const group of [this.#urgent, this.#due]) {
      for (const [key, item] of group) this.#failed.set(key, item);
      group.clear();
    }
  }

  /** What was tried in vain is due, before all others. */
  retry(now: number): void {
    for (const [key, item] of [...this.#failed]) this.add(key, item, true, now);
  }

  /** Nothing rests: what was written here says nothing any more. */
  wakeAll(): void {
    this.#written.clear();
    this.#wake(Number.POSITIVE_INFINITY);
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
      this.#due.set(key, item);
    }
    this.#nextUntil = next;
  }
}
