/** The events of one machine, step by step, from its trace. */
import type { AnyEventObject } from 'xstate';
import type { Recorder } from '../../src/runtime/trace/recorder.ts';
import { timerName } from '../../src/runtime/trace/statechart.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { type Limit, pollWithin } from './limit.ts';

/** An event or a timer that a machine handled. */
export interface MachineOccurrence {
  /** Type such as `epoch.live`, `xstate.done.actor.prepare` or `after backoff`. */
  readonly type: string;
  readonly event: AnyEventObject | undefined;
  /** State of the machine after the event or timer; `undefined` without a transition. */
  state: string | undefined;
}

export class Occurrences {
  readonly #list: MachineOccurrence[] = [];
  readonly #actor: string;
  #initial = '';
  /** Number of actors that had this name so far; only the first one is observed. */
  #lives = 0;
  /** Index of the occurrence that the machine is handling. */
  #currentIndex = 0;
  #waiters: (() => void)[] = [];

  constructor(recorder: Recorder, actor: string) {
    this.#actor = actor;
    recorder.observe((record) => this.#note(record));
  }

  at(index: number): MachineOccurrence | undefined {
    return this.#list[index];
  }

  get count(): number {
    return this.#list.length;
  }

  stateAfter(index: number): string {
    return this.#list.slice(0, index + 1).findLast(({ state }) => state !== undefined)?.state ?? this.#initial;
  }

  /** Resolves in the event loop iteration of the next occurrence, or after the limit. */
  next(limit: Limit): Promise<void> {
    return new Promise((resolve) => {
      let hasArrived: true | undefined;
      this.#waiters.push(() => {
        hasArrived = true;
        resolve();
      });
      void pollWithin(limit, () => hasArrived).then(() => resolve());
    });
  }

  #note(record: TraceRecord): void {
    if (record.kind === 'spawn' && record.actor === this.#actor) this.#lives++;
    if (this.#lives > 1) return;
    if (record.kind === 'event' && record.to === this.#actor) this.#add(record.event.type, record.event);
    else if (record.kind === 'timer' && record.actor === this.#actor) this.#add(`after ${record.timer}`, undefined);
    else if (record.kind === 'transition' && record.actor === this.#actor) this.#move(record.on, record.to);
  }

  #add(type: string, event: AnyEventObject | undefined): void {
    this.#list.push({ type, event, state: undefined });
    for (const wake of this.#waiters.splice(0)) wake();
  }

  /** A result may be recorded before the machine has handled its request: the cause identifies the event. */
  #move(cause: string, to: string): void {
    if (cause === 'xstate.init') this.#initial = to;
    const timer = timerName(cause);
    const type = timer === undefined ? cause : `after ${timer}`;
    const foundIndex = this.#list.findIndex(
      (occurrence, index) => index >= this.#currentIndex && occurrence.type === type && occurrence.state === undefined,
    );
    if (foundIndex >= 0) this.#currentIndex = foundIndex;
    const now = this.#list[this.#currentIndex];
    if (now !== undefined) now.state = to;
  }
}
