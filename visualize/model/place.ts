/** Where the person looks: all views follow these signals, and nothing else is shared between them. */
import { computed, signal } from '@preact/signals';
import type { TraceState } from '../../src/runtime/trace-state.ts';
import type { Recording } from './recording.ts';

/** The trace that is open. It grows without becoming another: {@link size} tells that it did. */
export const recording = signal<Recording | undefined>(undefined);

/** How many records the open trace has. Set after records were appended, at most once a frame. */
export const size = signal(0);

/** Index of the record that happened last at the place that is looked at; -1 before the first. */
export const place = signal(-1);

/** Whether the place goes along with the end of a live trace. */
export const follows = signal(false);

/** The actor whose chart and details are shown. */
export const chosenActor = signal<string | undefined>(undefined);

/** The range that exports take: first and last index. The whole trace when undefined. */
export const range = signal<readonly [number, number] | undefined>(undefined);

/** Where every actor stands there. */
export const state = computed<TraceState | undefined>(() => recording.value?.stateAt(place.value));

/** Goes to a place; anything but the end of a live trace ends the following. */
export function goTo(index: number): void {
  const last = (recording.value?.length ?? 0) - 1;
  place.value = Math.max(-1, Math.min(index, last));
  if (place.value < last) follows.value = false;
}
