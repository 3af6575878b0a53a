/** Direct causes and consequences of the current place, or the complete chain of a chosen place. */
import { computed, effect, signal } from '@preact/signals';
import { type CausePath, causePathOf, neighboursOf, nextIndexInPath } from '../../src/debugger/trace/cause-path.ts';
import { goTo, place, recording, size } from './place.ts';
import type { PageRecording } from './recording/recording.ts';

const chosenPlace = signal<{ readonly pageRecording: PageRecording; readonly index: number } | undefined>(undefined);

export const chainAnchor = computed(() =>
  chosenPlace.value?.pageRecording === recording.value ? chosenPlace.value?.index : undefined,
);

/** Delayed, so that quick steps compute no causes. */
const settledIndex = signal(-1);
const settleMs = 120;

export function startChain(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  effect(() => {
    const currentIndex = place.value;
    recording.value;
    clearTimeout(timer);
    timer = setTimeout(() => {
      settledIndex.value = currentIndex;
    }, settleMs);
  });
}

export const causalChain = computed<CausePath | undefined>(() => {
  const openRecording = recording.value;
  const anchor = chainAnchor.value;
  if (openRecording === undefined) return undefined;
  // Subscribes to the size, because consequences may be appended later.
  if (anchor !== undefined) return size.value > 0 ? causePathOf(openRecording, anchor) : undefined;
  return neighboursOf(openRecording, settledIndex.value);
});

const chainIndexes = computed<ReadonlySet<number>>(() => new Set(causalChain.value?.indexes));

export function isInChain(index: number): boolean {
  return chainIndexes.value.has(index);
}

/** Records of effects count for their owners. */
export const chainActors = computed<ReadonlyMap<string, number>>(() => {
  const counts = new Map<string, number>();
  for (const index of causalChain.value?.indexes ?? []) {
    const actor = recording.value?.subjectAt(index);
    if (actor === undefined) continue;
    const owner = actor.split('/')[0]!;
    counts.set(owner, (counts.get(owner) ?? 0) + 1);
  }
  return counts;
});

export function toggleChain(): void {
  const openRecording = recording.value;
  chosenPlace.value =
    chainAnchor.value === undefined && openRecording !== undefined
      ? { pageRecording: openRecording, index: place.value }
      : undefined;
}

/** Goes to the cause (-1) or a consequence (1). */
export function stepAlongCause(direction: 1 | -1): void {
  const openRecording = recording.value;
  if (openRecording === undefined) return;
  const neighbours = chainAnchor.value === undefined ? neighboursOf(openRecording, place.value) : causalChain.value;
  const nextIndex = neighbours === undefined ? undefined : nextIndexInPath(neighbours, place.value, direction);
  if (nextIndex !== undefined) goTo(nextIndex);
}
