import type { JSX } from 'preact';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { jumpTo, place, recording } from '../model/place.ts';
import { firstIndexAfter } from '../model/recording/sorted.ts';
import { clockText, recordText } from '../model/recording/words.ts';
import { fieldNames, foundText } from '../model/search.ts';
import { Icon } from '../parts/icon.tsx';
import {
  currentSearch,
  focusSearch,
  goToMatch,
  isSearchComplete,
  isSearchOpen,
  leaveSearch,
  matchIndexes,
  queryText,
} from './searching.ts';

const maxListed = 200;

export function SearchBox(): JSX.Element {
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') {
      event.preventDefault();
      isSearchOpen.value = true;
      goToMatch(event.shiftKey ? -1 : 1);
    } else if (event.key === 'Escape') {
      event.preventDefault();
      leaveSearch();
    } else if (event.key === 'ArrowDown') {
      event.preventDefault();
      document.querySelector<HTMLElement>('.found .record-link')?.focus();
    }
  };
  return (
    <search
      class="search"
      onFocusOut={({ currentTarget, relatedTarget }) => {
        // No element has the focus: the window lost it, or the user pressed outside, which closes the list anyway.
        if (relatedTarget instanceof Node && !currentTarget.contains(relatedTarget)) isSearchOpen.value = false;
      }}
    >
      <Icon name="search" />
      <input
        id="search"
        type="search"
        autocomplete="off"
        spellcheck={false}
        placeholder="Search the trace"
        aria-label="Search the trace"
        aria-describedby="search-help"
        value={queryText.value}
        onInput={({ currentTarget }) => {
          queryText.value = currentTarget.value;
          isSearchOpen.value = true;
        }}
        onFocus={() => {
          isSearchOpen.value = true;
        }}
        onKeyDown={onKey}
      />
      <span id="search-help" class="hidden">
        Words, or {fieldNames.join(', ')} followed by a colon and a value. Enter goes to the next match, Shift + Enter
        to the previous one.
      </span>
      <Count />
      {isSearchOpen.value && currentSearch.value !== undefined && <Matches />}
      {isSearchOpen.value && currentSearch.value === undefined && <Hints />}
    </search>
  );
}

function Count(): JSX.Element | null {
  if (currentSearch.value === undefined) return <kbd class="hint">/</kbd>;
  const matches = matchIndexes.value;
  const matchIndex = matches.indexOf(place.value);
  return (
    <span class="search-count" role="status">
      {matchIndex === -1 ? matches.length : `${matchIndex + 1} / ${matches.length}`}
      {isSearchComplete.value ? '' : '…'}
    </span>
  );
}

function Matches(): JSX.Element {
  const openRecording = recording.value;
  const matches = matchIndexes.value;
  const nearestMatch = firstIndexAfter(matches, (index) => index >= place.value);
  const firstShown = Math.max(0, Math.min(nearestMatch - maxListed / 4, matches.length - maxListed));
  const shownMatches = matches.slice(firstShown, firstShown + maxListed);
  return (
    <div class="found popup">
      {matches.length === 0 && <p class="muted">{isSearchComplete.value ? 'No matches.' : 'Searching…'}</p>}
      {firstShown > 0 && <p class="muted">{firstShown} earlier</p>}
      <ol>
        {openRecording !== undefined &&
          shownMatches.map((index) => {
            const record = openRecording.recordAt(index)!;
            return (
              <li key={index}>
                <button
                  type="button"
                  class="record-link"
                  data-record={record.seq}
                  aria-current={index === place.value}
                  onClick={() => {
                    jumpTo(index);
                    leaveSearch();
                  }}
                  onKeyDown={onFoundKey}
                >
                  <span class="seq">{record.seq}</span>
                  <span class="time">{clockText(record.t)}</span>
                  <span class="words">{recordText(record)}</span>
                  <MatchedPayload record={record} />
                </button>
              </li>
            );
          })}
      </ol>
      {firstShown + maxListed < matches.length && <p class="muted">{matches.length - firstShown - maxListed} later</p>}
    </div>
  );
}

function MatchedPayload({ record }: { readonly record: TraceRecord }): JSX.Element | null {
  const query = currentSearch.value?.query;
  const text = query === undefined ? undefined : foundText(query, record, recordText(record));
  if (text === undefined) return null;
  return (
    <span class="found-text">
      {text.textBefore}
      <mark>{text.matchedText}</mark>
      {text.textAfter}
    </span>
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
      <p class="muted">Words match all fields and payloads. To match one field:</p>
      <ol>
        {examples.map((example) => (
          <li key={example}>
            <button
              type="button"
              class="record-link"
              onKeyDown={onFoundKey}
              onClick={() => {
                queryText.value = example;
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

/** Arrow keys move through the list, and back up into the search box. */
function onFoundKey(event: KeyboardEvent): void {
  const links = [...document.querySelectorAll<HTMLElement>('.found .record-link')];
  const focusedIndex = links.indexOf(document.activeElement as HTMLElement);
  if (event.key === 'Escape') leaveSearch();
  else if (event.key === 'ArrowDown') links[focusedIndex + 1]?.focus();
  else if (event.key === 'ArrowUp')
    (focusedIndex <= 0 ? document.getElementById('search') : links[focusedIndex - 1])?.focus();
  else return;
  event.preventDefault();
  event.stopPropagation();
}
