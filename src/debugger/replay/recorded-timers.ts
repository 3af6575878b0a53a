import type { AnyActorRef } from 'xstate';
import { relay } from '../../runtime/actors/relay-event.ts';
import { timerName } from '../../runtime/trace/statechart.ts';
import type { ArmedTimer } from '../explore/armed-timer.ts';

/** The timers fire only as recorded. */
export class RecordedTimers {
  readonly #armedTimers = new Map<AnyActorRef, ArmedTimer[]>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Must be called before a timer of the system is armed. */
  replaceScheduler({ scheduler }: AnyActorRef['system']): void {
    scheduler.schedule = (source, target, event, delay, id = '') => {
      const timer = { at: this.#now() + Math.max(0, delay), id, source, target, event };
      this.#armedTimers.set(source, [...(this.#armedTimers.get(source) ?? []), timer]);
    };
    scheduler.cancel = (source, id) => this.#filterTimers(source, (timer) => timer.id !== id);
    scheduler.cancelAll = (source) => this.#armedTimers.delete(source);
  }

  elapse(actor: AnyActorRef, timer: string): boolean {
    return this.#fire(actor, ({ event }) => timerName(event.type) === timer);
  }

  deliver(from: AnyActorRef, to: AnyActorRef, type: string): boolean {
    return this.#fire(from, ({ target, event }) => target === to && event.type === type);
  }

  #fire(source: AnyActorRef, matches: (timer: ArmedTimer) => boolean): boolean {
    const matchingTimers = (this.#armedTimers.get(source) ?? []).filter(matches);
    const [firstTimer, ...otherTimers] = matchingTimers;
    if (firstTimer === undefined) return false;
    const nextTimer = otherTimers.reduce((soonest, timer) => (timer.at < soonest.at ? timer : soonest), firstTimer);
    this.#filterTimers(source, (timer) => timer !== nextTimer);
    relay(nextTimer.source, nextTimer.target, nextTimer.event);
    return true;
  }

  #filterTimers(source: AnyActorRef, shouldKeep: (timer: ArmedTimer) => boolean): void {
    const remainingTimers = (this.#armedTimers.get(source) ?? []).filter(shouldKeep);
    if (remainingTimers.length > 0) this.#armedTimers.set(source, remainingTimers);
    else this.#armedTimers.delete(source);
  }
}
