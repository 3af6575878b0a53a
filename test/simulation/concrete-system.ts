/** Root actors on a clock that a test advances: one timing at a time, where `SymbolicSystem` covers all timings. */
import { type AnyActorLogic, type AnyActorRef, createActor } from 'xstate';
import {
  type ActorHost,
  observeEvents,
  onChartFailure,
  type SymbolicRootOptions,
} from '../../src/debugger/explore/symbolic-system.ts';

/** The clock interface of XState. */
export interface Clock {
  setTimeout(fire: () => void, ms: number): number;
  clearTimeout(id: number): void;
}

export class ConcreteSystem implements ActorHost {
  readonly #clock: Clock;
  readonly #failures: string[];

  /** @param failures receives the machines that fail, and why */
  constructor(clock: Clock, failures: string[]) {
    this.#clock = clock;
    this.#failures = failures;
  }

  start(logic: AnyActorLogic, { id, input, inspect, created, onEvent }: SymbolicRootOptions): AnyActorRef {
    const clock = this.#clock as never;
    const root = createActor(logic, { id, input, clock, ...(inspect !== undefined && { inspect }) }) as AnyActorRef;
    onChartFailure(root, (failure) => this.#failures.push(failure));
    if (onEvent !== undefined) observeEvents(root, onEvent);
    created?.(root);
    root.start();
    return root;
  }

  /** Does nothing, because no state of a root is stored. */
  removeRoot(): void {}
}
