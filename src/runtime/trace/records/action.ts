import type { AnyActorRef } from 'xstate';
import type { KnownActor } from '../known-actors.ts';
import { timerName } from '../statechart.ts';
import type { RecorderContext } from './record-context.ts';

export function recordAction(
  recording: RecorderContext,
  ref: AnyActorRef,
  { type, params }: { type: string; params?: unknown },
): void {
  const { actors, record, data } = recording;
  if (!type.startsWith('xstate.')) {
    record({
      kind: 'effect',
      actor: actors.of(ref).name,
      effect: type,
      ...(params !== undefined && { params: data(params) }),
      ...actors.causeOf(ref),
    });
    return;
  }
  if (type === 'xstate.stopChild' && params !== undefined) recordStopCause(recording, params as AnyActorRef, ref);
  if (type === 'xstate.raise') recordTimer(recording, ref, params as RaiseAction);
}

interface RaiseAction {
  readonly event: { readonly type: string };
  /** Milliseconds. */
  readonly delay?: number;
}

function recordTimer({ actors, record }: RecorderContext, ref: AnyActorRef, { event, delay }: RaiseAction): void {
  const timer = timerName(event.type);
  if (timer === undefined || delay === undefined) return;
  const actor = actors.of(ref);
  // xstate.after.<delay>.<the state's id>
  const stateId = event.type.slice(`xstate.after.${timer}.`.length);
  const state = actor.machine?.getStateNodeById(stateId).path.join('.') ?? '';
  record({ kind: 'timer-started', actor: actor.name, timer, state, ms: delay, ...actors.causeOf(ref) });
}

function recordStopCause({ actors }: RecorderContext, child: AnyActorRef, stoppingActor: AnyActorRef): void {
  const stoppedActor: KnownActor = actors.of(child);
  const currentEventSeq = stoppedActor.inbox[0]?.seq ?? 0;
  stoppedActor.stoppedFor = {
    ...actors.causeOf(stoppingActor),
    ...(currentEventSeq > 0 && { during: currentEventSeq }),
  };
}
