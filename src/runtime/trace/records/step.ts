import type { AnyActorRef, AnyStateMachine, AnyTransitionDefinition, StateValue } from 'xstate';
import { stateName, transitionNumbers } from '../statechart.ts';
import { changesOf } from '../trace-state.ts';
import type { RecorderContext } from './record-context.ts';

export interface MachineState {
  readonly value?: StateValue;
  readonly context?: unknown;
}

export function recordStep(
  { actors, omitted, record, data }: RecorderContext,
  ref: AnyActorRef,
  snapshot: MachineState,
  eventType: string,
  transitions: readonly AnyTransitionDefinition[],
): void {
  const actor = actors.of(ref);
  if (actor.machine === undefined) return;
  const hasSameState = areValuesEqual(snapshot.value, actor.value);
  if (
    hasSameState &&
    (snapshot.context === actor.recordedContextSource || omitted.has(eventType)) &&
    transitions.length === 0
  )
    return;
  const targetState = hasSameState ? actor.state : stateName(snapshot.value);
  const from = actor.state;
  actor.value = snapshot.value;
  if (targetState === from && omitted.has(eventType)) return;
  const context =
    snapshot.context === actor.recordedContextSource && transitions.length === 0
      ? actor.context
      : data(snapshot.context);
  const change = changesOf(actor.context, context);
  const takenTransitions = takenTransitionNumbers(actor.machine, transitions);
  if (targetState === from && change.length === 0 && takenTransitions.length === 0) return;
  actor.state = targetState;
  actor.context = context;
  actor.recordedContextSource = snapshot.context;
  const step = {
    actor: actor.name,
    on: eventType,
    ...actors.causeOf(ref),
    ...(takenTransitions.length > 0 && { taken: takenTransitions }),
    ...(change.length > 0 && { change }),
  };
  record(targetState === from ? { kind: 'step', ...step } : { kind: 'transition', from, to: targetState, ...step });
}

/** XState creates a new value for each step, although most are equal. */
function areValuesEqual(a: StateValue | undefined, b: StateValue | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object') return false;
  // A state value has its regions or one child state as keys, so equal values have the same number of keys.
  for (const state in a) if (!areValuesEqual(a[state], b[state])) return false;
  return true;
}

/** Transitions with an effect; a transition that a chart declares to ignore an event is not one. */
function takenTransitionNumbers(machine: AnyStateMachine, transitions: readonly AnyTransitionDefinition[]): number[] {
  if (transitions.length === 0) return [];
  const numbers = transitionNumbers(machine);
  return transitions.flatMap((transition) => {
    if (transition.target === undefined && transition.actions.length === 0) return [];
    return numbers.get(transition) ?? [];
  });
}
