import type { JSX } from 'preact';
import { connection, source, sources } from '../model/connection.ts';
import { followsEnd, goTo, place, recording, size } from '../model/place.ts';
import { isPlaying, playbackSpeed, togglePlaying } from '../model/playing.ts';
import { clockText, durationText, recordText, wallClockText } from '../model/recording/words.ts';
import { paces } from '../model/time/player.ts';
import { Icon, type IconName } from '../parts/icon.tsx';
import { goToDeviation, goToEnd, stepRecord } from '../parts/steps.ts';

export function Transport(): JSX.Element {
  return (
    <section class="transport" aria-label="Playback">
      <span class="buttons">
        <Button icon="first" label="First record (Home)" onClick={() => goTo(0)} />
        <Button icon="back" label="Previous record (←)" onClick={() => stepRecord(-1)} />
        <Button
          icon={isPlaying.value ? 'pause' : 'play'}
          label={isPlaying.value ? 'Pause (Space)' : 'Play (Space)'}
          onClick={togglePlaying}
          id="play"
        />
        <Button icon="forward" label="Next record (→)" onClick={() => stepRecord(1)} />
        <Button icon="last" label="Last record (End)" onClick={goToEnd} />
      </span>
      <SpeedSelect />
      <Slider />
      <PositionText />
      <DeviationCount />
      <FollowButton />
    </section>
  );
}

function Button({
  icon,
  label,
  onClick,
  id,
}: {
  readonly icon: IconName;
  readonly label: string;
  readonly onClick: () => void;
  readonly id?: string;
}): JSX.Element {
  return (
    <button
      type="button"
      class="quiet"
      aria-label={label}
      title={label}
      onClick={onClick}
      {...(id !== undefined && { id })}
    >
      <Icon name={icon} />
    </button>
  );
}

function SpeedSelect(): JSX.Element {
  return (
    <select
      class="pace"
      aria-label="Playback speed"
      title="Playback speed. Long pauses are shortened"
      value={String(playbackSpeed.value)}
      onChange={({ currentTarget }) => {
        playbackSpeed.value = Number(currentTarget.value);
      }}
    >
      {paces.map((n) => (
        <option key={n} value={String(n)}>
          {n === 0.25 ? '¼' : n}×
        </option>
      ))}
    </select>
  );
}

function Slider(): JSX.Element {
  const lastIndex = size.value - 1;
  const progressPercent = lastIndex < 0 ? 0 : ((place.value + 1) / (lastIndex + 1)) * 100;
  return (
    <input
      type="range"
      id="place"
      aria-label="Position in the trace"
      aria-valuetext={placeText()}
      min={-1}
      max={Math.max(lastIndex, -1)}
      step={1}
      value={place.value}
      style={{ '--share': `${progressPercent}%` }}
      onInput={({ currentTarget }) => goTo(Number(currentTarget.value))}
    />
  );
}

function PositionText(): JSX.Element {
  const openRecording = recording.value;
  const t = openRecording === undefined ? 0 : openRecording.timeAt(place.value);
  return (
    <div class="where">
      <span class="record-number">
        <b>{place.value + 1}</b> / {size.value}
      </span>
      <span title="Time since the program started">{clockText(t)}</span>
      <span
        class="muted"
        title={openRecording === undefined ? '' : new Date(Date.parse(openRecording.header.startedAt) + t).toString()}
      >
        {openRecording === undefined ? '' : wallClockText(openRecording.header.startedAt, t)}
      </span>
    </div>
  );
}

function DeviationCount(): JSX.Element | null {
  // Subscribes to the growth of the trace.
  size.value;
  const count = recording.value?.deviations.length ?? 0;
  if (count === 0) return null;
  const countText = count === 1 ? '1 deviation' : `${count} deviations`;
  return (
    <button
      type="button"
      class="departure-count"
      title="Next deviation from the sequence diagrams (Ctrl + →)"
      onClick={() => goToDeviation(1)}
    >
      <Icon name="departure" />
      {countText}
    </button>
  );
}

function FollowButton(): JSX.Element | null {
  if (sources.value[source.value]?.kind !== 'live' || connection.value.kind !== 'live') return null;
  return (
    <button
      type="button"
      class="follow"
      id="follow"
      aria-pressed={followsEnd.value}
      title="Follow the running program (End)"
      onClick={() => {
        if (followsEnd.value) followsEnd.value = false;
        else goToEnd();
      }}
    >
      <span class="dot" />
      {followsEnd.value ? 'Following' : 'Follow'}
    </button>
  );
}

/** Returns text such as `record 123 of 456, 12.3 s, supervisor: settled → deciding`. */
export function placeText(): string {
  const record = recording.value?.recordAt(place.value);
  if (record === undefined) return 'before the first record';
  return `record ${place.value + 1} of ${size.value}, ${durationText(record.t)}, ${recordText(record)}`;
}
