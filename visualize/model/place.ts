/** The user's current place: all views follow these signals, and share nothing else. */
import { batch, computed, signal } from '@preact/signals';
import type { Session } from '../../src/debugger/page-data.ts';
import type { TraceState } from '../../src/runtime/trace/trace-state.ts';
import type { Recording } from './recording/recording.ts';

/** The open trace. The object stays the same while it grows; {@link size} changes then. */
export const recording = signal<Recording | undefined>(undefined);

/** Its pictures and diagrams; set before {@link recording}. */
export const session = signal<Session | undefined>(undefined);

/** Number of records of the open trace. Set after records were appended, at most once per frame. */
export const size = signal(0);

/** Index of the last record at the current place; -1 before the first. */
export const place = signal(-1);

/** Whether the place follows the end of a live trace. */
export const follows = signal(false);

/** The actor whose chart and details are shown. */
export const chosenActor = signal<string | undefined>(undefined);

/** The range for exports: first and last index. `undefined` for the whole trace. */
export const range = signal<readonly [number, number] | undefined>(undefined);

/** State of every actor at the current place. */
export const state = computed<TraceState | undefined>(() => recording.value?.stateAt(place.value));

/** Milliseconds since the record at the place: of a live program, or of the playback. */
export const elapsed = signal(0);

/** The current time of the trace's clock: that of the record at the place, plus the elapsed time. */
export const now = computed(() => (recording.value?.timeAt(place.value) ?? 0) + elapsed.value);

/** Counts jumps: changes of the place that the browser's back button undoes, unlike steps. */
export const jumps = signal(0);

/** Goes to a place; stops following unless that is the end of a live trace. */
export function goTo(index: number): void {
  const last = (recording.value?.length ?? 0) - 1;
  batch(() => {
    place.value = Math.max(-1, Math.min(index, last));
    elapsed.value = 0;
    if (place.value < last) follows.value = false;
  });
}

/** Goes to a distant place: a link, a search result, a cause. */
export function jumpTo(index: number): void {
  goTo(index);
  jumps.value++;
}

/** Whether all charts are shown in the overview, instead of the chosen actor's. */
export const showsAll = signal(false);

/** Chooses an actor and shows its chart. */
export function choose(actor: string): void {
  showsAll.value = false;
  if (actor === chosenActor.value) return;
  chosenActor.value = actor;
  jumps.value++;
}
