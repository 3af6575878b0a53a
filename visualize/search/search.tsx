import { computed, effect, signal, untracked } from '@preact/signals';
import type { JSX } from 'preact';
import { nextTurn } from '../model/frames.ts';
import { jumpTo, place, recording, size } from '../model/place.ts';
import { fieldNames, parseQuery, Search } from '../model/search.ts';
import { firstAfter } from '../model/sorted.ts';
import { clockText, recordInWords } from '../model/words.ts';
import { Icon } from '../shell/icon.tsx';

/** The page is deaf for so long while it searches. */
const sliceMs = 8;
/** Around the place; the whole list of a hundred thousand is no use to anybody. */
const listed = 200;

const text = signal('');
const isOpen = signal(false);
const running = signal<Search | undefined>(undefined);
/** Grows with what was found. */
const progress = signal(0);
const isComplete = signal(true);

const found = computed<readonly number[]>(() => {
  progress.value;
  return running.value?.found ?? [];
});

/** From now on what was typed is looked for, also in what comes later. */
export function keepSearching(): void {
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
    const records = recording.peek()?.records;
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

function goToFound(direction: 1 | -1): void {
  const places = found.value;
  if (places.length === 0) return;
  const next =
    direction === 1
      ? firstAfter(places, (index) => index > place.value)
      : firstAfter(places, (index) => index >= place.value) - 1;
  // Behind the last one comes the first one.
  jumpTo(places[(next + places.length) % places.length]!);
}

export function SearchBox(): JSX.Element {
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') {
      event.preventDefault();
      isOpen.value = true;
      goToFound(event.shiftKey ? -1 : 1);
    } else if (event.key === 'Escape') {
      event.preventDefault();
      if (isOpen.value) isOpen.value = false;
      else (event.currentTarget as HTMLElement).blur();
    } else if (event.key === 'ArrowDown') {
      event.preventDefault();
      document.querySelector<HTMLElement>('.found .record-link')?.focus();
    }
  };
  return (
    <search class="search">
      <Icon name="search" />
      <input
        id="search"
        type="search"
        autocomplete="off"
        spellcheck={false}
        placeholder="Search events, actors, payloads"
        aria-label="Search the trace"
        aria-describedby="search-help"
        value={text.value}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value;
          isOpen.value = true;
        }}
        onFocus={() => {
          isOpen.value = true;
        }}
        onKeyDown={onKey}
      />
      <span id="search-help" class="hidden">
        Words, or {fieldNames.join(', ')} with a colon. Enter goes to the next record that was found, Shift and Enter to
        the one before.
      </span>
      <Count />
      {isOpen.value && running.value !== undefined && <Found />}
      {isOpen.value && running.value === undefined && <Hints />}
    </search>
  );
}

function Count(): JSX.Element | null {
  if (running.value === undefined) return <kbd class="hint">/</kbd>;
  const places = found.value;
  const at = places.indexOf(place.value);
  return (
    <span class="search-count" role="status">
      {at === -1 ? places.length : `${at + 1} / ${places.length}`}
      {isComplete.value ? '' : '…'}
    </span>
  );
}

function Found(): JSX.Element {
  const open = recording.value;
  const places = found.value;
  const near = firstAfter(places, (index) => index >= place.value);
  const first = Math.max(0, Math.min(near - listed / 4, places.length - listed));
  const shown = places.slice(first, first + listed);
  return (
    <div class="found popup">
      {places.length === 0 && <p class="muted">{isComplete.value ? 'Nothing is like that.' : 'Searching…'}</p>}
      {first > 0 && <p class="muted">{first} before these</p>}
      <ol>
        {open !== undefined &&
          shown.map((index) => {
            const record = open.records[index]!;
            return (
              <li key={index}>
                <button
                  type="button"
                  class="record-link"
                  data-record={record.seq}
                  aria-current={index === place.value}
                  onClick={() => jumpTo(index)}
                  onKeyDown={onFoundKey}
                >
                  <span class="seq">{record.seq}</span>
                  <span class="time">{clockText(record.t)}</span>
                  <span class="words">{recordInWords(record)}</span>
                </button>
              </li>
            );
          })}
      </ol>
      {first + listed < places.length && <p class="muted">{places.length - first - listed} after these</p>}
    </div>
  );
}

function Hints(): JSX.Element {
  const examples = [
    'actor:supervisor kind:transition',
    'epoch.failed',
    'kind:log error',
    'state:draining',
    '"not ready" -kind:timer',
  ];
  return (
    <div class="found popup">
      <p class="muted">Words are looked for everywhere, payloads included. Or in one field:</p>
      <ol>
        {examples.map((example) => (
          <li key={example}>
            <button
              type="button"
              class="record-link"
              onKeyDown={onFoundKey}
              onClick={() => {
                text.value = example;
                focusSearch();
              }}
            >
              <code>{example}</code>
            </button>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** Closes what was found when the person goes on elsewhere. */
export function closeSearchOutside(event: Event): void {
  if (!(event.target instanceof Element) || event.target.closest('.search') === null) isOpen.value = false;
}

/** Arrows go through the list, and back up into the box. */
function onFoundKey(event: KeyboardEvent): void {
  const links = [...document.querySelectorAll<HTMLElement>('.found .record-link')];
  const at = links.indexOf(document.activeElement as HTMLElement);
  if (event.key === 'Escape') {
    isOpen.value = false;
    focusSearch();
    isOpen.value = false;
  } else if (event.key === 'ArrowDown') links[at + 1]?.focus();
  else if (event.key === 'ArrowUp') (at <= 0 ? document.getElementById('search') : links[at - 1])?.focus();
  else return;
  event.preventDefault();
  event.stopPropagation();
}
