import type { VirtualClock } from './virtual-clock.ts';

interface PacedTimer {
  /** In the time of this clock. */
  readonly dueMs: number;
  readonly onFire: () => void;
  underlyingId: number;
}

/** A clock that is slower or faster than its base clock: a program with too little CPU time, or clock drift. */
export class PacedClock {
  readonly #baseClock: VirtualClock;
  readonly #timers = new Map<number, PacedTimer>();
  #nextId = 1;
  /** Milliseconds of this clock per millisecond of the base clock. */
  #pace = 1;
  #ownAnchorMs = 0;
  #belowAnchorMs: number;

  constructor(baseClock: VirtualClock) {
    this.#baseClock = baseClock;
    this.#belowAnchorMs = baseClock.now();
  }

  /** Milliseconds since the clock was created, on this clock. */
  readonly now = (): number => this.#ownAnchorMs + (this.#baseClock.now() - this.#belowAnchorMs) * this.#pace;

  setTimeout(fire: () => void, ms: number): number {
    const id = this.#nextId++;
    const timer: PacedTimer = { dueMs: this.now() + Math.max(0, ms), onFire: fire, underlyingId: 0 };
    this.#timers.set(id, timer);
    this.#arm(id, timer);
    return id;
  }

  clearTimeout(id: number): void {
    const timer = this.#timers.get(id);
    if (timer === undefined) return;
    this.#baseClock.clearTimeout(timer.underlyingId);
    this.#timers.delete(id);
  }

  /** Changes the pace, also for armed timers. */
  setPace(pace: number): void {
    this.#ownAnchorMs = this.now();
    this.#belowAnchorMs = this.#baseClock.now();
    this.#pace = pace;
    for (const [id, timer] of this.#timers) {
      this.#baseClock.clearTimeout(timer.underlyingId);
      this.#arm(id, timer);
    }
  }

  #arm(id: number, timer: PacedTimer): void {
    const ms = Math.max(0, timer.dueMs - this.now()) / this.#pace;
    timer.underlyingId = this.#baseClock.setTimeout(() => {
      this.#timers.delete(id);
      timer.onFire();
    }, ms);
  }
}
