import type { AnyActorRef } from 'xstate';
import { settleCall } from '../../src/debugger/explore/scripted-effect.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** Effects that take time: one pending call per effect, and none after it is stopped. */
export class PendingCalls {
  readonly #clock: VirtualClock;
  readonly #timers = new Map<AnyActorRef, number>();

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  runLater(call: AnyActorRef, ms: number, action: () => void): void {
    this.cancelCall(call);
    const fire = () => {
      this.#timers.delete(call);
      if (call.getSnapshot().status === 'active') action();
    };
    this.#timers.set(call, this.#clock.setTimeout(fire, ms));
  }

  respond(call: AnyActorRef, result: Parameters<typeof settleCall>[1], ms = 0): void {
    this.runLater(call, ms, () => settleCall(call, result));
  }

  cancelCall(call: AnyActorRef): void {
    const timer = this.#timers.get(call);
    if (timer !== undefined) this.#clock.clearTimeout(timer);
    this.#timers.delete(call);
  }
}
