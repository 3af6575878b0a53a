/**
 * A clock for XState whose time moves only when told to. Unlike xstate's SimulatedClock it steps through deadlines one
 * at a time: a timer armed inside a timer's callback starts at the right instant, and equal deadlines fire in the order
 * in which they were armed.
 */
export class VirtualClock {
  #now = 0;
  #nextId = 1;
  readonly #timers = new Map<number, { at: number; fire: () => void }>();

  /** Milliseconds since the clock was made. */
  readonly now = (): number => this.#now;

  setTimeout(fire: () => void, ms: number): number {
    const id = this.#nextId++;
    this.#timers.set(id, { at: this.#now + Math.max(0, ms), fire });
    return id;
  }

  clearTimeout(id: number): void {
    this.#timers.delete(id);
  }

  /** Deadlines relative to now, soonest first: part of a state's identity. */
  pending(): number[] {
    return [...this.#timers.values()].map(({ at }) => at - this.#now).sort((a, b) => a - b);
  }

  /** When the next timer is due, in milliseconds since the clock was made. */
  soonest(): number | undefined {
    let soonest: number | undefined;
    for (const { at } of this.#timers.values()) if (soonest === undefined || at < soonest) soonest = at;
    return soonest;
  }

  /** Jumps to the soonest deadline and fires that one timer; false when none is armed. */
  fireNext(): boolean {
    let soonest: number | undefined;
    for (const [id, { at }] of this.#timers) {
      if (soonest === undefined || at < this.#timers.get(soonest)!.at) soonest = id;
    }
    if (soonest === undefined) return false;
    const { at, fire } = this.#timers.get(soonest)!;
    this.#timers.delete(soonest);
    this.#now = at;
    fire();
    return true;
  }

  /** Lets `ms` milliseconds pass, firing what falls due on the way. */
  advance(ms: number): void {
    const until = this.#now + ms;
    for (let next = this.pending()[0]; next !== undefined && this.#now + next <= until; next = this.pending()[0]) {
      this.fireNext();
    }
    this.#now = until;
  }
}
