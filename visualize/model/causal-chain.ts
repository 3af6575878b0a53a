/** The shown causal chain: direct causes and consequences of the current place, or the complete chain of a chosen place. */
import { computed, effect, signal } from '@preact/signals';
import { type CausePath, causePathOf, neighboursOf, nextInPath } from '../../src/debugger/trace/cause-path.ts';
import { goTo, place, recording, size } from './place.ts';
import type { PageRecording } from './recording/recording.ts';

const chosen = signal<{ readonly of: PageRecording; readonly index: number } | undefined>(undefined);

/** Place whose complete chain is shown; `undefined` without a chain or after another trace was opened. */
export const chainAnchor = computed(() => (chosen.value?.of === recording.value ? chosen.value?.index : undefined));

/** Current place with a delay, so that quick steps do not compute causes. */
const settled = signal(-1);
const settleMs = 120;

export function startChain(): void {
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

export const causalChain = computed<CausePath | undefined>(() => {
  const open = recording.value;
  const anchor = chainAnchor.value;
  if (open === undefined) return undefined;
  // Subscribes to the size, because consequences may be appended later.
  if (anchor !== undefined) return size.value > 0 ? causePathOf(open, anchor) : undefined;
  return neighboursOf(open, settled.value);
});

const places = computed<ReadonlySet<number>>(() => new Set(causalChain.value?.indexes));

export function isInChain(index: number): boolean {
  return places.value.has(index);
}

/** Number of the chain's records about each actor; those of effects count for their owners. */
export const chainActors = computed<ReadonlyMap<string, number>>(() => {
  const counts = new Map<string, number>();
  for (const index of causalChain.value?.indexes ?? []) {
    const actor = recording.value?.aboutAt(index);
    if (actor === undefined) continue;
    const owner = actor.split('/')[0]!;
    counts.set(owner, (counts.get(owner) ?? 0) + 1);
  }
  return counts;
});

export function toggleChain(): void {
  const open = recording.value;
  chosen.value = chainAnchor.value === undefined && open !== undefined ? { of: open, index: place.value } : undefined;
}

/** Goes to the cause (-1), or to a consequence (1). */
export function stepAlongCause(by: 1 | -1): void {
  const open = recording.value;
  if (open === undefined) return;
  const now = chainAnchor.value === undefined ? neighboursOf(open, place.value) : causalChain.value;
  const next = now === undefined ? undefined : nextInPath(now, place.value, by);
  if (next !== undefined) goTo(next);
}
