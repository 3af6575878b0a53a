/** The clocks of one process, which may be too fast or too slow, and stop while the process is paused. */
import type { ClockReading } from '../../src/discovery/election/leader-term.ts';
import type { VirtualClock } from './virtual-clock.ts';

export class PacedProcess {
  readonly #clock: VirtualClock;
  readonly #rate: number;
  readonly #timers = new Map<number, number>();
  /** Events to deliver when the process is resumed; undefined if it is not paused. */
  #heldActions: { readonly kind: 'timer' | 'answer'; readonly happen: () => void }[] | undefined;
  readonly #suspends: boolean;
  #stoppedAt = 0;
  /** Total time for which its monotonic clock was stopped. */
  #stoodStillMs = 0;
  #isEnded = false;
  #nextId = 1;

  /**
   * @param rate rate of its clocks; 2: an hour on its clock takes half an hour
   * @param suspends whether its machine is suspended, too, which stops its monotonic clock
   */
  constructor(clock: VirtualClock, rate: number, suspends = false) {
    this.#suspends = suspends;
    this.#clock = clock;
    this.#rate = rate;
  }

  get clockReading(): ClockReading {
    const ms = this.#clock.now() * this.#rate;
    const standsStill = this.#suspends && this.#heldActions !== undefined ? this.#clock.now() - this.#stoppedAt : 0;
    return {
      monotonicMs: ms - (this.#stoodStillMs + standsStill) * this.#rate,
      wallMs: 1_700_000_000_000 + ms,
    };
  }

  setTimeout(fire: () => void, ms: number): number {
    const id = this.#nextId++;
    const fireTimer = (): void => {
      if (!this.#timers.delete(id)) return;
      fire();
    };
    const at = this.#clock.setTimeout(() => this.#runWhenAwake('timer', fireTimer), ms / this.#rate);
    this.#timers.set(id, at);
    return id;
  }

  clearTimeout(id: number): void {
    const at = this.#timers.get(id);
    if (at === undefined) return;
    this.#timers.delete(id);
    this.#clock.clearTimeout(at);
  }

  whenAwake(happen: () => void): void {
    this.#runWhenAwake('answer', happen);
  }

  stop(): void {
    if (this.#heldActions === undefined) this.#stoppedAt = this.#clock.now();
    this.#heldActions ??= [];
  }

  /** @param first kind of events that are handled first */
  wake(first: 'timer' | 'answer'): void {
    const heldActions = this.#heldActions ?? [];
    if (this.#heldActions !== undefined && this.#suspends) this.#stoodStillMs += this.#clock.now() - this.#stoppedAt;
    this.#heldActions = undefined;
    for (const { kind, happen } of heldActions) if (kind === first) happen();
    for (const { kind, happen } of heldActions) if (kind !== first) happen();
  }

  end(): void {
    this.#isEnded = true;
    for (const at of this.#timers.values()) this.#clock.clearTimeout(at);
    this.#timers.clear();
  }

  #runWhenAwake(kind: 'timer' | 'answer', happen: () => void): void {
    if (this.#isEnded) return;
    if (this.#heldActions === undefined) happen();
    else this.#heldActions.push({ kind, happen });
  }
}
