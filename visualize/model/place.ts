/** The user's current place. All views share only these signals. */
import { batch, computed, signal } from '@preact/signals';
import type { Session } from '../../src/debugger/page-data.ts';
import type { TraceState } from '../../src/runtime/trace/trace-state.ts';
import type { PageRecording } from './recording/recording.ts';

/** While the trace grows, the object stays the same and {@link size} changes. */
export const recording = signal<PageRecording | undefined>(undefined);

/** Set before {@link recording}. */
export const session = signal<Session | undefined>(undefined);

/** Updated at most once per frame. */
export const size = signal(0);

/** Index of the last record at the current place; -1 before the first. */
export const place = signal(-1);

export const followsEnd = signal(false);

export const chosenActor = signal<string | undefined>(undefined);

/** First and last index of the range for exports; `undefined` for the complete trace. */
export const range = signal<readonly [number, number] | undefined>(undefined);

export const state = computed<TraceState | undefined>(() => recording.value?.stateAt(place.value));

/** Milliseconds since the record at the place. */
export const elapsedMs = signal(0);

export const currentTime = computed(() => (recording.value?.timeAt(place.value) ?? 0) + elapsedMs.value);

/** A jump is a change of the place that the browser's back button reverts, unlike a step. */
export const jumpCount = signal(0);

/** Stops following unless the place is the end of a live trace. */
export function goTo(index: number): void {
  const lastIndex = (recording.value?.length ?? 0) - 1;
  batch(() => {
    place.value = Math.max(-1, Math.min(index, lastIndex));
    elapsedMs.value = 0;
    if (place.value < lastIndex) followsEnd.value = false;
  });
}

/** For a distant place, such as a search result or a cause. */
export function jumpTo(index: number): void {
  goTo(index);
  jumpCount.value++;
}

/** Whether the overview of all charts replaces the chart of the chosen actor. */
export const showsAllActors = signal(false);

export function chooseActor(actor: string): void {
  showsAllActors.value = false;
  if (actor === chosenActor.value) return;
  chosenActor.value = actor;
  jumpCount.value++;
}
