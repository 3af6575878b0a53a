import type { AnyActorLogic, AnyActorRef, AnyEventObject } from 'xstate';
import { scriptedPromise } from '../explore/scripted-effect.ts';

/** An effect may act synchronously at these times. */
export interface EffectObserver {
  onStarted(effect: AnyActorRef): void;
  /** The effect received an event, or was stopped. */
  onReached(effect: AnyActorRef): void;
}

/** Replaces an effect of any kind. The replay completes it with `settle` and sends its reports with `relay`. */
export function replayedEffect({ onStarted, onReached }: EffectObserver): AnyActorLogic {
  const effect = scriptedPromise<unknown, unknown>(
    ({ self }) => onStarted(self),
    ({ self }) => onReached(self),
  ) as AnyActorLogic;
  return {
    ...effect,
    transition: (snapshot: { status: string }, event: AnyEventObject, scope) => {
      const nextSnapshot = effect.transition(snapshot, event, scope);
      if (nextSnapshot === snapshot && snapshot.status === 'active') onReached(scope.self);
      return nextSnapshot;
    },
  };
}

/** A reducer (`fromTransition`) is not notified when it is stopped. */
export function replayedReducer(effectMoments: EffectObserver): AnyActorLogic {
  const effect = replayedEffect(effectMoments);
  return {
    ...effect,
    transition: (snapshot, event: AnyEventObject, scope) =>
      event.type === 'xstate.stop' ? snapshot : effect.transition(snapshot, event, scope),
  };
}
