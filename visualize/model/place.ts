/** Where the person looks: all views follow these signals, and nothing else is shared between them. */
import { batch, computed, signal } from '@preact/signals';
import type { Session } from '../../src/debugger/page-data.ts';
import type { TraceState } from '../../src/runtime/trace/trace-state.ts';
import type { Recording } from './recording/recording.ts';

/** The trace that is open. It grows without becoming another: {@link size} tells that it did. */
export const recording = signal<Recording | undefined>(undefined);

/** The pictures and diagrams that belong to it; there before {@link recording} is. */
export const session = signal<Session | undefined>(undefined);

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

/** Milliseconds that went by since the record at the place: a live program's, or those of the playback. */
export const elapsed = signal(0);

/** The time of the trace's clock that is looked at: of the record at the place, and what went by since. */
export const now = computed(() => (recording.value?.timeAt(place.value) ?? 0) + elapsed.value);

/** Counts the jumps: a change of place that the browser's back button undoes, unlike a step. */
export const jumps = signal(0);

/** Goes to a place; anything but the end of a live trace ends the following. */
export function goTo(index: number): void {
  const last = (recording.value?.length ?? 0) - 1;
  batch(() => {
    place.value = Math.max(-1, Math.min(index, last));
    elapsed.value = 0;
    if (place.value < last) follows.value = false;
  });
}

/** Goes to a place far away: a link, something found, a cause. */
export function jumpTo(index: number): void {
  goTo(index);
  jumps.value++;
}

/** Whether all charts are shown, small, instead of the chosen actor's. */
export const showsAll = signal(false);

/** Looks at an actor; from then on its chart is shown, and no other. */
export function choose(actor: string): void {
  showsAll.value = false;
  if (actor === chosenActor.value) return;
  chosenActor.value = actor;
  jumps.value++;
}
