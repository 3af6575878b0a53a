import type { AnyActorLogic, AnyActorRef, AnyEventObject } from 'xstate';
import { scriptedPromise } from '../explore/scripted-effect.ts';

/** The moments at which an effect may have answered at once. */
export interface EffectMoments {
  started(effect: AnyActorRef): void;
  /** It was sent something, or stopped. */
  reached(effect: AnyActorRef): void;
}

/**
 * Logic that stands in for an effect of any kind: it does nothing by itself. It is settled with `settle`, and its reports
 * are sent with `relay`, when the recording says so.
 */
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

/** As {@link replayedEffect}, for a reducer (`fromTransition`): it never hears that it was stopped. */
export function replayedReducer(moments: EffectMoments): AnyActorLogic {
  const effect = replayedEffect(moments);
  return {
    ...effect,
    transition: (snapshot, event: AnyEventObject, scope) =>
      event.type === 'xstate.stop' ? snapshot : effect.transition(snapshot, event, scope),
  };
}
