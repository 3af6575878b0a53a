/**
 * Effects that complete synchronously when the world settles them, without promises, timers, or state outside the
 * actor's snapshot, so that a world can be restored.
 */
import type { ActorLogic, AnyActorRef, AnyEventObject, Snapshot } from 'xstate';
import type { CallbackActorLogic, PromiseActorLogic } from 'xstate/actors';
import { relay } from '../../runtime/actors/relay-event.ts';

export interface RunningEffect<Input> {
  readonly input: Input;
  readonly self: AnyActorRef;
  readonly system: AnyActorRef['system'];
}

/** Replaces `fromPromise`; the world completes the effect with {@link settleCall}. */
export function scriptedPromise<Output, Input>(
  start: (call: RunningEffect<Input>) => void,
  stop: (call: RunningEffect<Input>) => void = () => {},
): PromiseActorLogic<Output, Input> {
  const logic: ActorLogic<Snapshot<Output> & { input: Input | undefined }, AnyEventObject, Input> = {
    getInitialSnapshot: (_, input) => ({ status: 'active', output: undefined, error: undefined, input }),
    start: (snapshot, { self, system }) => start({ input: snapshot.input as Input, self, system }),
    transition: (snapshot, event, { self, system }) => {
      if (snapshot.status !== 'active') return snapshot;
      const { input } = snapshot;
      switch (event.type) {
        case resolvedType:
          return { status: 'done', output: event.data as Output, error: undefined, input: undefined };
        case rejectedType:
          return { status: 'error', output: undefined, error: event.data, input: undefined };
        case 'xstate.stop':
          stop({ input: input as Input, self, system });
          return { status: 'stopped', output: undefined, error: undefined, input: undefined };
        default:
          return snapshot;
      }
    },
    getPersistedSnapshot: (snapshot) => snapshot,
  };
  return logic;
}

/** The recorder omits these events from a trace. */
const resolvedType = 'xstate.promise.resolve';
const rejectedType = 'xstate.promise.reject';

export function settleCall(call: AnyActorRef, result: { value: unknown } | { error: Error }): void {
  call.send(
    'error' in result ? { type: rejectedType, data: result.error } : { type: resolvedType, data: result.value },
  );
}

/** Replaces `fromCallback`. */
export function scriptedCallback<Order extends { type: string }, Input>(effect: {
  start(effect: RunningEffect<Input>): void;
  receive?(effect: RunningEffect<Input>, order: Order): void;
  stop?(effect: RunningEffect<Input>): void;
}): CallbackActorLogic<Order, Input> {
  const logic: ActorLogic<Snapshot<undefined> & { input: Input }, Order, Input> = {
    getInitialSnapshot: (_, input) => ({ status: 'active', output: undefined, error: undefined, input }),
    start: ({ input }, { self, system }) => effect.start({ input, self, system }),
    transition: (snapshot, event, { self, system }) => {
      const runningCall = { input: snapshot.input, self, system };
      if (event.type === 'xstate.stop') {
        effect.stop?.(runningCall);
        return { ...snapshot, status: 'stopped', error: undefined };
      }
      effect.receive?.(runningCall, event);
      return snapshot;
    },
    getPersistedSnapshot: (snapshot) => snapshot,
  };
  return logic;
}

export function reportEvent(effect: AnyActorRef, event: AnyEventObject): void {
  const parent = effect._parent;
  if (parent === undefined || effect.getSnapshot().status !== 'active') return;
  relay(effect, parent, event);
}
