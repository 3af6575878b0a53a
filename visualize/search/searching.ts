import { computed, effect, signal, untracked } from '@preact/signals';
import { addIndicator } from '../model/idle.ts';
import { jumpTo, place, recording, size } from '../model/place.ts';
import { firstIndexAfter } from '../model/recording/sorted.ts';
import { parseQuery, TraceSearch } from '../model/search.ts';
import { yieldToBrowser } from '../model/time/frames.ts';

const sliceMs = 8;
export const queryText = signal('');
export const isSearchOpen = signal(false);
export const currentSearch = signal<TraceSearch | undefined>(undefined);
/** Increases with the number of matches. */
const progress = signal(0);
export const isSearchComplete = signal(true);

export const matchIndexes = computed<readonly number[]>(() => {
  progress.value;
  return currentSearch.value?.matchIndexes ?? [];
});

export function startSearching(): void {
  addIndicator('searching', () => !isSearchComplete.value);
  effect(() => {
    const openRecording = recording.value;
    const query = parseQuery(queryText.value);
    currentSearch.value = openRecording === undefined || query.terms.length === 0 ? undefined : new TraceSearch(query);
  });
  effect(() => {
    size.value;
    const search = currentSearch.value;
    if (search !== undefined) untracked(() => void advance(search));
  });
}

async function advance(search: TraceSearch): Promise<void> {
  isSearchComplete.value = false;
  for (;;) {
    const records = recording.peek();
    // Another search replaced this one, or no trace is open.
    if (records === undefined || currentSearch.peek() !== search) return;
    const deadline = performance.now() + sliceMs;
    const hasFinished = search.advance(records, () => performance.now() < deadline);
    progress.value++;
    if (hasFinished) break;
    await yieldToBrowser();
  }
  isSearchComplete.value = true;
}

export function focusSearch(): void {
  document.getElementById('search')?.focus();
}

/** Closes the list and returns the focus to the page, so that arrow keys step again. The query stays. */
export function leaveSearch(): void {
  isSearchOpen.value = false;
  if (document.activeElement instanceof HTMLElement && document.activeElement.closest('.search') !== null) {
    document.activeElement.blur();
  }
}

export function goToMatch(direction: 1 | -1): void {
  const matches = matchIndexes.value;
  if (matches.length === 0) return;
  const nextIndex =
    direction === 1
      ? firstIndexAfter(matches, (index) => index > place.value)
      : firstIndexAfter(matches, (index) => index >= place.value) - 1;
  jumpTo(matches[(nextIndex + matches.length) % matches.length]!);
}

export function closeSearchOutside(event: Event): void {
  if (!(event.target instanceof Element) || event.target.closest('.search') === null) isSearchOpen.value = false;
}
