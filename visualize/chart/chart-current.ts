import { computed } from '@preact/signals';
import type { Statechart } from '../../src/runtime/trace/statechart.ts';
import type { ActorSnapshot } from '../../src/runtime/trace/trace.ts';
import { chosenActor, place, recording, size, state } from '../model/place.ts';
import { type StepRecord, stepsBefore, type TakenTransitions, takenTransitionsAt } from './chart-steps.ts';

/** The actor whose chart is shown: the chosen one, or the first with a chart. */
export const shownActor = computed<string | undefined>(() => {
  if (chosenActor.value !== undefined) return chosenActor.value;
  const withChart = [...(state.value?.actors.values() ?? [])].filter(({ machine }) => machine !== undefined);
  return (withChart.find(({ actor }) => actor === 'supervisor') ?? withChart[0])?.actor ?? lastEndedActor();
});

function lastEndedActor(): string | undefined {
  const openRecording = recording.value;
  for (let index = Math.min(place.value, (openRecording?.length ?? 0) - 1); index >= 0; index--) {
    const record = openRecording!.kindAt(index) === 'transition' ? openRecording!.recordAt(index) : undefined;
    if (record?.kind === 'transition' && record.from !== '') return record.actor;
  }
  return undefined;
}

export const shownSnapshot = computed<ActorSnapshot | undefined>(() =>
  shownActor.value === undefined ? undefined : state.value?.actors.get(shownActor.value),
);

export const shownMachine = computed<string | undefined>(() => {
  const actor = shownActor.value;
  if (actor === undefined || size.value < 0) return undefined;
  return shownSnapshot.value?.machine ?? recording.value?.machineOf(actor);
});

const definitions = computed<ReadonlyMap<string, Statechart>>(
  () => new Map((recording.value?.header.machines ?? []).map((chart) => [chart.id, chart])),
);

export function definitionOf(machine: string | undefined): Statechart | undefined {
  return machine === undefined ? undefined : definitions.value.get(machine);
}

export function stepsOf(actor: string): Iterable<{ readonly index: number; readonly record: StepRecord }> {
  return recording.value === undefined ? [] : stepsBefore(recording.value, actor, place.value);
}

export function currentTransitions({ actor, spawned }: ActorSnapshot): TakenTransitions {
  if (recording.value === undefined) return { currentNumbers: [], previousNumbers: [] };
  return takenTransitionsAt(recording.value, actor, spawned, place.value);
}

/** -1 if the actor entered its state before the trace began. */
export function stateEntryIndex({ actor, spawned }: ActorSnapshot): number {
  const openRecording = recording.value;
  const index = openRecording?.lastIndexAbout(actor, ['transition'], place.value + 1) ?? -1;
  return (openRecording?.seqAt(index) ?? 0) >= spawned ? index : -1;
}
