/** What is looked for in the open trace, and what was found: also in records that come later. */
import { computed, effect, signal, untracked } from '@preact/signals';
import { addIndicator } from '../model/idle.ts';
import { jumpTo, place, recording, size } from '../model/place.ts';
import { firstAfter } from '../model/recording/sorted.ts';
import { parseQuery, Search } from '../model/search.ts';
import { nextTurn } from '../model/time/frames.ts';

/** The page is deaf for so long while it searches. */
const sliceMs = 8;
/** What was typed. */
export const text = signal('');
/** Whether what was found is listed. */
export const isOpen = signal(false);
/** Undefined: nothing is looked for. */
export const running = signal<Search | undefined>(undefined);
/** Grows with what was found. */
const progress = signal(0);
export const isComplete = signal(true);

/** Places of the records that were found so far, in order. */
export const found = computed<readonly number[]>(() => {
  progress.value;
  return running.value?.found ?? [];
});

/** From now on what was typed is looked for, also in what comes later. */
export function keepSearching(): void {
  addIndicator('searching', () => !isComplete.value);
  effect(() => {
    const open = recording.value;
    const query = parseQuery(text.value);
    running.value = open === undefined || query.terms.length === 0 ? undefined : new Search(query);
  });
  effect(() => {
    size.value;
    const search = running.value;
    if (search !== undefined) untracked(() => void advance(search));
  });
}

async function advance(search: Search): Promise<void> {
  isComplete.value = false;
  for (;;) {
    const records = recording.peek();
    // Another search, or this one is under way already.
    if (records === undefined || running.peek() !== search) return;
    const until = performance.now() + sliceMs;
    const done = search.advance(records, () => performance.now() < until);
    progress.value++;
    if (done) break;
    await nextTurn();
  }
  isComplete.value = true;
}

export function focusSearch(): void {
  document.getElementById('search')?.focus();
}

/** Closes the list and gives the keys back to the page: arrows step again. What was typed stays. */
export function leaveSearch(): void {
  isOpen.value = false;
  if (document.activeElement instanceof HTMLElement && document.activeElement.closest('.search') !== null) {
    document.activeElement.blur();
  }
}

/** Goes to the next record that was found, forwards or backwards; behind the last one comes the first one. */
export function goToFound(direction: 1 | -1): void {
  const places = found.value;
  if (places.length === 0) return;
  const next =
    direction === 1
      ? firstAfter(places, (index) => index > place.value)
      : firstAfter(places, (index) => index >= place.value) - 1;
  jumpTo(places[(next + places.length) % places.length]!);
}

/** Closes what was found when the person goes on elsewhere. */
export function closeSearchOutside(event: Event): void {
  if (!(event.target instanceof Element) || event.target.closest('.search') === null) isOpen.value = false;
}
