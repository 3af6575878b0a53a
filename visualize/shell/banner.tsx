import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { connection, connectionNotice, source, sources } from '../model/connection.ts';
import { openSource, reopenSource } from '../model/load.ts';
import { jumpTo, recording, session, size } from '../model/place.ts';
import { Icon } from '../parts/icon.tsx';
import { moreText } from '../parts/more.ts';

const maxLines = 20;

export function Banners(): JSX.Element {
  return (
    <div class="banners" role="status">
      <ConnectionBanner />
      <PartBanner />
      <GapBanner />
      {connectionNotice.value !== undefined && (
        <p class="banner note">
          <span>{connectionNotice.value}</span>
          <button
            type="button"
            class="quiet"
            aria-label="Dismiss"
            onClick={() => {
              connectionNotice.value = undefined;
            }}
          >
            <Icon name="close" />
          </button>
        </p>
      )}
    </div>
  );
}

function ConnectionBanner(): JSX.Element | null {
  const connectionState = connection.value;
  const name = sources.value[source.value]?.name ?? 'the source';
  switch (connectionState.kind) {
    case 'lost':
      return <LostConnectionBanner name={name} reason={connectionState.reason} retryAt={connectionState.retryAt} />;
    case 'ended':
      return (
        <p class="banner note">
          <span>
            <b>The program ended.</b> This page keeps its {size.value} records.
          </span>
          <button type="button" onClick={reopenSource}>
            Reconnect
          </button>
        </p>
      );
    case 'failed':
      return (
        <p class="banner bad">
          <span>
            {sources.value[source.value] !== undefined && (
              <b>{recording.value === undefined ? `${name} cannot be opened. ` : `${name} cannot be read further. `}</b>
            )}
            {sentence(connectionState.reason)}
            {recording.value !== undefined && ` The ${size.value} records before it are shown.`}
          </span>
          {sources.value[source.value] !== undefined && (
            <button type="button" onClick={reopenSource}>
              Try again
            </button>
          )}
        </p>
      );
    case 'complete':
      if (connectionState.cutOffLines.length === 0) return null;
      return (
        <p class="banner note">
          <span>
            {connectionState.cutOffLines.length === 1 ? 'Line' : 'Lines'}{' '}
            {connectionState.cutOffLines.slice(0, maxLines).join(', ')}
            {connectionState.cutOffLines.length > maxLines &&
              ` ${moreText(connectionState.cutOffLines.length - maxLines, '')}`}
            : truncated by a crash or a full disk, and skipped.
          </span>
        </p>
      );
    default:
      return null;
  }
}

/** An exported file usually contains only a part of a trace. */
function PartBanner(): JSX.Element | null {
  size.value;
  const openRecording = recording.value;
  const totalRecords = session.value?.part?.of;
  if (openRecording === undefined || totalRecords === undefined || connection.value.kind === 'opening') return null;
  return (
    <p class="banner note" data-part-of={totalRecords}>
      <span>
        <b>
          Part of a trace: records {openRecording.seqAt(0)}–{openRecording.seqAt(openRecording.length - 1)} of{' '}
          {totalRecords}.
        </b>{' '}
        The findings are those of the whole trace.
      </span>
    </p>
  );
}

/** A ring buffer or rotated file drops its beginning by design; this is not a gap. */
function GapBanner(): JSX.Element | null {
  size.value;
  const openRecording = recording.value;
  const holes = openRecording?.gaps.filter(({ index }) => index > 0 || openRecording.header.actors === undefined) ?? [];
  const [firstHole] = holes;
  if (openRecording === undefined || firstHole === undefined || connection.value.kind === 'opening') return null;
  const missingRecords = holes.reduce((sum, hole) => sum + hole.missingCount, 0);
  return (
    <p class="banner note" data-gaps={holes.length}>
      <span>
        <b>
          {missingRecords.toLocaleString('en')} {missingRecords === 1 ? 'record is' : 'records are'} missing
        </b>{' '}
        {holes.length === 1 ? '' : `in ${holes.length} places, first `}
        before record {openRecording.seqAt(firstHole.index)}. States shown after it may be outdated.
      </span>
      <button type="button" onClick={() => jumpTo(firstHole.index)}>
        Go to gap
      </button>
    </p>
  );
}

function LostConnectionBanner({
  name,
  reason,
  retryAt,
}: {
  readonly name: string;
  readonly reason: string;
  readonly retryAt: number;
}): JSX.Element {
  const remainingSeconds = useSignal(0);
  useEffect(() => {
    const count = (): void => {
      remainingSeconds.value = Math.max(0, Math.ceil((retryAt - performance.now()) / 1_000));
    };
    count();
    const timer = setInterval(count, 250);
    return () => clearInterval(timer);
  }, [retryAt]);
  return (
    <p class="banner bad">
      <span>
        <b>Connection to {name} lost.</b> {sentence(reason)}{' '}
        {remainingSeconds.value === 0 ? 'Reconnecting…' : `Next attempt in ${remainingSeconds.value} s.`}
      </span>
      <button type="button" onClick={reopenSource}>
        Retry now
      </button>
    </p>
  );
}

function sentence(reason: string): string {
  const text = reason.trim();
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
}

export function OpeningBanner(): JSX.Element {
  const connectionState = connection.value;
  return (
    <div class="opening">
      {connectionState.kind === 'opening' && (
        <>
          <span class="progress-bar" />
          <p>Opening {sources.value[source.value]?.name ?? ''}</p>
          <p class="muted">
            {connectionState.records > 0 ? `${connectionState.records.toLocaleString('en')} records` : ''}
          </p>
        </>
      )}
      {connectionState.kind === 'failed' && sources.value.length > 0 && (
        <>
          <p>What can be opened:</p>
          <ul class="sources">
            {sources.value.map(({ name, place }, number) => (
              <li key={name}>
                <button type="button" title={place} onClick={() => void openSource(number)}>
                  {name}
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
