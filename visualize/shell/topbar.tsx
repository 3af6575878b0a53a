import type { JSX } from 'preact';
import { ExportMenu } from '../export/export-menu.tsx';
import { connection, source, sources } from '../model/connection.ts';
import { openSource } from '../model/load.ts';
import { jumpCount, recording } from '../model/place.ts';
import { SearchBox } from '../search/search.tsx';
import { OpenFile } from './drop-zone.tsx';
import { HelpButton } from './help.tsx';
import { ThemeSwitch } from './theme.tsx';

export function Topbar(): JSX.Element {
  return (
    <header class="topbar">
      <h1>
        <Logo />
        chartpilot
      </h1>
      <SourceSwitch />
      <OpenFile />
      <Program />
      <span class="grow" />
      <SearchBox />
      <ExportMenu />
      <ThemeSwitch />
      <HelpButton />
    </header>
  );
}

function Logo(): JSX.Element {
  return (
    <svg class="logo" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
      <rect x="1.2" y="3.2" width="17.6" height="13.6" rx="4.2" />
      <circle cx="6.4" cy="10" r="2.3" class="lit" />
      <circle cx="14" cy="10" r="2.1" />
      <path d="M8.9 10h2.6" />
    </svg>
  );
}

function SourceSwitch(): JSX.Element | null {
  const sourceList = sources.value;
  const currentSource = sourceList[source.value];
  if (currentSource === undefined) return null;
  const status = (
    <span class="status" data-connection={connection.value.kind}>
      <span class="dot" />
      {statusText()}
    </span>
  );
  if (sourceList.length === 1) {
    return (
      <span class="source" title={currentSource.place}>
        <b>{currentSource.name}</b>
        {status}
      </span>
    );
  }
  return (
    <span class="source">
      <select
        id="source"
        aria-label="Source"
        title={currentSource.place}
        value={String(source.value)}
        onChange={({ currentTarget }) => {
          jumpCount.value++;
          void openSource(Number(currentTarget.value));
        }}
      >
        {sourceList.map(({ name }, number) => (
          <option key={name} value={String(number)}>
            {name}
          </option>
        ))}
      </select>
      {status}
    </span>
  );
}

function statusText(): string {
  switch (connection.value.kind) {
    case 'opening':
      return 'opening';
    case 'complete':
      return 'recorded';
    case 'live':
      return 'live';
    case 'lost':
      return 'connection lost';
    case 'ended':
      return 'ended';
    case 'failed':
      return recording.value === undefined ? 'unreadable' : 'damaged';
  }
}

function Program(): JSX.Element | null {
  const header = recording.value?.header;
  if (header === undefined) return null;
  const startDate = new Date(header.startedAt);
  return (
    <span class="program muted" title={`Process ${header.pid}, started ${startDate.toString()}`}>
      {header.program} · pid {header.pid} ·{' '}
      {Number.isNaN(startDate.getTime())
        ? header.startedAt
        : startDate.toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })}
    </span>
  );
}
