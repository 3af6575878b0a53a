/**
 * A clock for XState whose time is advanced explicitly. Unlike xstate's SimulatedClock it fires deadlines one at a time: a timer armed inside a
 * timer's callback starts at the right instant, and equal deadlines fire in arming order.
 */
export class VirtualClock {
  #now = 0;
  #nextId = 1;
  /** Latest first, so that the next timer is the last element: a thousand agents have thousands of timers, and none is searched for. */
  readonly #timers: Timer[] = [];
  readonly #dueAt = new Map<number, number>();

  /** Milliseconds since the clock was created. */
  readonly now = (): number => this.#now;

  setTimeout(fire: () => void, ms: number): number {
    const id = this.#nextId++;
    const at = this.#now + Math.max(0, ms);
    this.#timers.splice(this.#placeOf(at, id), 0, { id, dueMs: at, onFire: fire });
    this.#dueAt.set(id, at);
    return id;
  }

  clearTimeout(id: number): void {
    const at = this.#dueAt.get(id);
    if (at === undefined) return;
    this.#dueAt.delete(id);
    this.#timers.splice(this.#placeOf(at, id), 1);
  }

  /** Deadlines relative to now, soonest first; part of a state's identity. */
  pendingDelays(): number[] {
    return this.#timers.map(({ dueMs }) => dueMs - this.#now).reverse();
  }

  /** When the next timer is due, in milliseconds since the clock was created. */
  nextDueMs(): number | undefined {
    return this.#timers.at(-1)?.dueMs;
  }

  /** Jumps to the soonest deadline and fires that one timer; false when none is armed. */
  fireNext(): boolean {
    const timer = this.#timers.pop();
    if (timer === undefined) return false;
    this.#dueAt.delete(timer.id);
    this.#now = timer.dueMs;
    timer.onFire();
    return true;
  }

  /** Advances time by `ms` milliseconds, and fires due timers. */
  advance(ms: number): void {
    const untilMs = this.#now + ms;
    for (let next = this.nextDueMs(); next !== undefined && next <= untilMs; next = this.nextDueMs()) this.fireNext();
    this.#now = untilMs;
  }

  /** The index of a timer, or where to insert it: after all that fire later. */
  #placeOf(at: number, id: number): number {
    let [from, to] = [0, this.#timers.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      const other = this.#timers[middle]!;
      if (other.dueMs > at || (other.dueMs === at && other.id > id)) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}

interface Timer {
  readonly id: number;
  readonly dueMs: number;
  readonly onFire: () => void;
}
