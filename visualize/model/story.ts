/** The story of one cause as the page shows it: one step each way of the place that is looked at, or all of one that was chosen. */
import { computed, effect, signal } from '@preact/signals';
import { neighboursOf, nextInStory, type Story, storyOf } from '../../src/debugger/trace/story.ts';
import { goTo, place, recording, size } from './place.ts';
import type { Recording } from './recording/recording.ts';

const chosen = signal<{ readonly of: Recording; readonly index: number } | undefined>(undefined);

/** The place whose whole story is shown; undefined while none is. Another trace has another one. */
export const storyAnchor = computed(() => (chosen.value?.of === recording.value ? chosen.value?.index : undefined));

/** The place, once somebody stays there: who steps quickly does not wait for what its causes cost. */
const settled = signal(-1);
const settleMs = 120;

/** From now on the neighbours of the place are looked for. */
export function keepStory(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  effect(() => {
    const at = place.value;
    recording.value;
    clearTimeout(timer);
    timer = setTimeout(() => {
      settled.value = at;
    }, settleMs);
  });
}

export const story = computed<Story | undefined>(() => {
  const open = recording.value;
  const anchor = storyAnchor.value;
  if (open === undefined) return undefined;
  // What came of it may come later.
  if (anchor !== undefined) return size.value > 0 ? storyOf(open, anchor) : undefined;
  return neighboursOf(open, settled.value);
});

const places = computed<ReadonlySet<number>>(() => new Set(story.value?.places));

export function isInStory(index: number): boolean {
  return places.value.has(index);
}

/** How many of the story's records are about each actor; an effect's are its owner's. */
export const storyActors = computed<ReadonlyMap<string, number>>(() => {
  const counts = new Map<string, number>();
  for (const index of story.value?.places ?? []) {
    const actor = recording.value?.aboutAt(index);
    if (actor === undefined) continue;
    const owner = actor.split('/')[0]!;
    counts.set(owner, (counts.get(owner) ?? 0) + 1);
  }
  return counts;
});

/** Shows the whole story of the place that is looked at; puts it away again. */
export function toggleStory(): void {
  const open = recording.value;
  chosen.value = storyAnchor.value === undefined && open !== undefined ? { of: open, index: place.value } : undefined;
}

/** Along the cause: to what came before (-1), or to what came of it (1). */
export function stepAlongCause(by: 1 | -1): void {
  const open = recording.value;
  if (open === undefined) return;
  const now = storyAnchor.value === undefined ? neighboursOf(open, place.value) : story.value;
  const next = now === undefined ? undefined : nextInStory(now, place.value, by);
  if (next !== undefined) goTo(next);
}
