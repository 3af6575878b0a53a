import type { AnyActorLogic, AnyActorRef, AnyEventObject } from 'xstate';
import { scriptedPromise } from '../explore/scripted-effect.ts';

/** An effect may act synchronously at these times. */
export interface EffectMoments {
  started(effect: AnyActorRef): void;
  /** The effect received an event, or was stopped. */
  reached(effect: AnyActorRef): void;
}

/** Replaces an effect of any kind. The replay completes it with `settle` and sends its reports with `relay`. */
export function replayedEffect({ started, reached }: EffectMoments): AnyActorLogic {
  const effect = scriptedPromise<unknown, unknown>(
    ({ self }) => started(self),
    ({ self }) => reached(self),
  ) as AnyActorLogic;
  return {
    ...effect,
    transition: (snapshot: { status: string }, event: AnyEventObject, scope) => {
      const next = effect.transition(snapshot, event, scope);
      if (next === snapshot && snapshot.status === 'active') reached(scope.self);
      return next;
    },
  };
}

/** A reducer (`fromTransition`) is not notified when it is stopped. */
export function replayedReducer(effectMoments: EffectMoments): AnyActorLogic {
  const effect = replayedEffect(effectMoments);
  return {
    ...effect,
    transition: (snapshot, event: AnyEventObject, scope) =>
      event.type === 'xstate.stop' ? snapshot : effect.transition(snapshot, event, scope),
  };
}
