import type { AnyActorRef } from 'xstate';
import { relay } from '../../runtime/actors/relay-event.ts';
import { timerName } from '../../runtime/trace/statechart.ts';
import type { ArmedTimer } from '../explore/armed-timer.ts';

/** Virtual time passes only by calls of `pass`. */
export class VirtualTimers {
  #now = 0;
  #armedTimers: readonly ArmedTimer[] = [];

  /** Must be called before a timer of the system is armed. */
  constructor({ scheduler }: AnyActorRef['system']) {
    scheduler.schedule = (source, target, event, delay, id = '') => {
      this.#armedTimers = [
        ...this.#armedTimers,
        { at: this.#now + (delay > 0 ? delay : 0), id, source, target, event },
      ];
    };
    scheduler.cancel = (source, id) => this.#filterTimers((timer) => timer.source !== source || timer.id !== id);
    scheduler.cancelAll = (source) => this.#filterTimers((timer) => timer.source !== source);
  }

  get nowMs(): number {
    return this.#now;
  }

  nextTimers(): { timers: string[]; ms: number } | undefined {
    if (this.#armedTimers.length === 0) return undefined;
    const dueAt = Math.min(...this.#armedTimers.map((timer) => timer.at));
    const dueTimers = this.#armedTimers.filter((timer) => timer.at === dueAt);
    return { timers: dueTimers.map(({ event }) => timerName(event.type) ?? event.type), ms: dueAt - this.#now };
  }

  pendingTimers(): string[] {
    return this.#armedTimers.map(({ at, event }) => `${event.type} ${at - this.#now}`).sort();
  }

  /** Timers that are due together fire in the order in which they were armed. */
  pass(ms: number): void {
    const targetTime = this.#now + ms;
    for (
      let dueTimers = this.nextTimers();
      dueTimers !== undefined && this.#now + dueTimers.ms <= targetTime;
      dueTimers = this.nextTimers()
    ) {
      this.#now += dueTimers.ms;
      this.#fire(this.#armedTimers.find((timer) => timer.at === this.#now)!);
    }
    this.#now = targetTime;
  }

  #fire(dueTimer: ArmedTimer): void {
    this.#filterTimers((timer) => timer !== dueTimer);
    relay(dueTimer.source, dueTimer.target, dueTimer.event);
  }

  #filterTimers(shouldKeep: (timer: ArmedTimer) => boolean): void {
    this.#armedTimers = this.#armedTimers.filter(shouldKeep);
  }
}
