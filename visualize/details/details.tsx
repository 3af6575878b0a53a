import { effect, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { type Moment, momentAt } from '../model/moment.ts';
import { chooseActor, place, recording, size } from '../model/place.ts';
import { isPlaying } from '../model/playing.ts';
import {
  actionText,
  actorOf,
  clockText,
  durationText,
  eventText,
  stateText,
  wallClockText,
} from '../model/recording/words.ts';
import { LargeButton } from '../parts/large-button.tsx';
import { moreText } from '../parts/more.ts';
import { Column } from './column.tsx';
import { CopyButton } from './copy-button.tsx';
import { Causes } from './details-causes.tsx';
import { Context } from './details-context.tsx';
import { Definition } from './details-definition.tsx';
import { RecordDeviations } from './details-deviations.tsx';
import { LogLines } from './details-lines.tsx';
import { Json } from './json.tsx';

/** The current place with a delay. */
const shownIndex = signal(-1);
/** Faster updates would be unreadable and slow down stepping. */
const minUpdateIntervalMs = 140;

const maxResultingSteps = 20;

export function startDetails(): void {
  let lastShownAtMs = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const show = (): void => {
    timer = undefined;
    lastShownAtMs = performance.now();
    shownIndex.value = place.peek();
  };
  effect(() => {
    place.value;
    recording.value;
    const wait = lastShownAtMs + minUpdateIntervalMs - performance.now();
    if (wait <= 0) show();
    else if (timer === undefined) timer = setTimeout(show, wait);
  });
}

export function Details(): JSX.Element {
  const openRecording = recording.value;
  // Subscribes to the size, because consequences may be appended later.
  if (!isPlaying.value) size.value;
  const moment = openRecording === undefined ? undefined : momentAt(openRecording, shownIndex.value);
  return (
    <section class="pane details" aria-labelledby="details-heading">
      <h2 id="details-heading" class="hidden">
        Details
      </h2>
      {openRecording === undefined || moment === undefined ? (
        <p class="empty">
          {openRecording === undefined ? '' : 'Before the first record. Step forward (→) or play (Space).'}
        </p>
      ) : (
        <>
          <Column label="Record" class="record-column">
            <RecordHead moment={moment} startedAt={openRecording.header.startedAt} />
            <RecordDeviations open={openRecording} index={moment.index} />
            <Payload moment={moment} />
          </Column>
          <Context moment={moment} />
          <Causes open={openRecording} index={moment.index} />
          <Column label="Definition">
            <Definition moment={moment} />
          </Column>
          <LogLines open={openRecording} t={moment.record.t} />
          <LargeButton pane="details" />
        </>
      )}
    </section>
  );
}

function RecordHead({
  moment: { record },
  startedAt,
}: {
  readonly moment: Moment;
  readonly startedAt: string;
}): JSX.Element {
  return (
    <header class="record-head">
      <p class="meta">
        <span class="kind" data-kind={record.kind}>
          {record.kind}
        </span>
        <span>#{record.seq}</span>
        <span>{clockText(record.t)}</span>
        <span class="muted">{wallClockText(startedAt, record.t)}</span>
      </p>
      <h3>
        {record.kind === 'event' ? (
          <>
            <ActorLink actor={record.from} /> <span class="step">→</span> <ActorLink actor={record.to} />
          </>
        ) : (
          <ActorLink actor={actorOf(record)} />
        )}
      </h3>
      <p class="happening">{actionText(record)}</p>
    </header>
  );
}

function ActorLink({ actor }: { readonly actor: string }): JSX.Element {
  if (actor === 'outside' || actor.includes('/')) return <span>{actor}</span>;
  return (
    <button type="button" class="link" onClick={() => chooseActor(actor)}>
      {actor}
    </button>
  );
}

function Payload({ moment: { record, stepIndexes } }: { readonly moment: Moment }): JSX.Element {
  const openRecording = recording.value!;
  const resultingSteps =
    record.kind === 'transition' || record.kind === 'step'
      ? []
      : stepIndexes.slice(0, maxResultingSteps).map((index) => openRecording.recordAt(index)!);
  const { title, value } = payloadOf(record);
  return (
    <>
      {value !== undefined && (
        <div class="block">
          <h4>
            {title}
            <CopyButton text={() => JSON.stringify(value, null, 2)} label={title.toLowerCase()} />
          </h4>
          <Json value={value} />
        </div>
      )}
      {(record.kind === 'transition' || record.kind === 'step') && (
        <dl class="fields">
          {record.kind === 'transition' && (
            <>
              <dt>from</dt>
              <dd>{record.from === '' ? '—' : record.from}</dd>
              <dt>to</dt>
              <dd>{record.to}</dd>
            </>
          )}
          <dt>on</dt>
          <dd>{eventText(record.on)}</dd>
        </dl>
      )}
      {record.kind === 'timer-started' && (
        <dl class="fields">
          <dt>delay</dt>
          <dd>{durationText(record.ms)}</dd>
          <dt>in state</dt>
          <dd>{record.state}</dd>
        </dl>
      )}
      {resultingSteps.length > 0 && (
        <p class="answer">
          Result:{' '}
          {resultingSteps
            .map((resultingStep) =>
              resultingStep.kind === 'transition'
                ? `${stateText(resultingStep.from) || 'start'} → ${stateText(resultingStep.to)}`
                : 'no state change',
            )
            .join(', ')}
          {stepIndexes.length > maxResultingSteps && ` ${moreText(stepIndexes.length - maxResultingSteps, '')}`}
        </p>
      )}
    </>
  );
}

function payloadOf(record: Moment['record']): { title: string; value?: unknown } {
  switch (record.kind) {
    case 'event': {
      const { type: _, ...payload } = record.event;
      return Object.keys(payload).length === 0 ? { title: '' } : { title: 'Payload', value: payload };
    }
    case 'spawn':
      return record.input === undefined ? { title: '' } : { title: 'Input', value: record.input };
    case 'effect':
      return record.params === undefined ? { title: '' } : { title: 'Parameters', value: record.params };
    case 'stop':
      if (record.output === undefined) return { title: '' };
      return { title: 'Output', value: record.output };
    default:
      return { title: '' };
  }
}
