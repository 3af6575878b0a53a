import type { JSX } from 'preact';
import type { ActorSnapshot } from '../../src/runtime/trace/trace.ts';
import { chooseActor, currentTime, goTo, recording, showsAllActors, state } from '../model/place.ts';
import { clockText, eventText } from '../model/recording/words.ts';
import { LargeButton } from '../parts/large-button.tsx';
import {
  currentTransitions,
  definitionOf,
  shownActor,
  shownMachine,
  shownSnapshot,
  stateEntryIndex,
  stepsOf,
} from './chart-current.ts';
import { missingPictureReason, shownPicture, showsCompleteCharts } from './chart-folding.ts';
import { chartGroups } from './chart-groups.ts';
import { countdownsAt, remainingTimeText, sortedTransitionTexts, transitionText } from './chart-lights.ts';
import { ChartOverview } from './chart-overview.tsx';
import { ChartStrip } from './chart-strip.tsx';
import { ChartText } from './chart-text.tsx';
import { ChartViewport } from './chart-viewport.tsx';

export function ChartView(): JSX.Element {
  const { groups, omittedActors } = chartGroups(state.value?.actors.values() ?? []);
  return (
    <section class="chart-view" aria-label="Statecharts">
      <ChartStrip groups={groups} omittedActors={omittedActors} showsAllActors={showsAllActors} show={chooseActor} />
      {showsAllActors.value ? (
        <ChartOverview groups={groups} omittedActors={omittedActors} show={chooseActor} />
      ) : (
        <ChosenChart />
      )}
      <ChartText groups={groups} omittedActors={omittedActors} />
    </section>
  );
}

function ChosenChart(): JSX.Element {
  const actor = shownActor.value;
  const machine = shownMachine.value;
  if (actor === undefined)
    return <p class="chart-none">No active actor at this record. Step forward, or select an actor.</p>;
  const text = machine === undefined ? undefined : shownPicture(machine, shownSnapshot.value?.state ?? '');
  return (
    <>
      <ChartHead actor={actor} snapshot={shownSnapshot.value} machine={machine} />
      {machine !== undefined && text !== undefined ? (
        <ChartViewport key={machine} machine={machine} text={text} />
      ) : (
        <NoPicture actor={actor} machine={machine} />
      )}
    </>
  );
}

interface HeadProps {
  actor: string;
  snapshot: ActorSnapshot | undefined;
  machine: string | undefined;
}

function ChartHead({ actor, snapshot, machine }: HeadProps): JSX.Element {
  return (
    <header class="chart-head">
      <h2>{actor}</h2>
      {machine !== undefined && machine !== actor && <span class="chart-machine">{machine}</span>}
      {snapshot === undefined ? (
        <span class="chart-absent">{absenceReason(actor)}</span>
      ) : (
        <>
          <span class="chart-state">
            {snapshot.state || (machine === undefined ? 'active' : recording.value?.missingStateReason(machine))}
          </span>
          <StateDuration snapshot={snapshot} />
          <Timers snapshot={snapshot} />
        </>
      )}
      <span class="grow" />
      <LargeButton pane="chart" />
      {snapshot !== undefined && <LastAndNextTransitions snapshot={snapshot} />}
    </header>
  );
}

function absenceReason(actor: string): string {
  for (const { record } of stepsOf(actor)) {
    if (record.kind === 'transition') return `ended; last state: ${record.to}`;
  }
  return 'not active at this record';
}

function StateDuration({ snapshot }: { snapshot: ActorSnapshot }): JSX.Element {
  const index = stateEntryIndex(snapshot);
  const record = recording.value?.recordAt(index);
  if (record === undefined) return <span class="chart-since">since {clockText(snapshot.spawnedAt)}</span>;
  return (
    <button type="button" class="chart-since" title="Go to the transition into this state" onClick={() => goTo(index)}>
      since {clockText(record.t)}
    </button>
  );
}

/** These texts are missing in a brief picture. */
function LastAndNextTransitions({ snapshot }: { snapshot: ActorSnapshot }): JSX.Element | null {
  const chart = definitionOf(snapshot.machine);
  if (chart === undefined || showsCompleteCharts.value) return null;
  const { currentNumbers, previousNumbers } = currentTransitions(snapshot);
  const [number] = currentNumbers.length > 0 ? currentNumbers : previousNumbers;
  const transition = number === undefined ? undefined : chart.transitions[number];
  const nextTexts = sortedTransitionTexts(chart, snapshot.state);
  return (
    <p class="chart-ways" title={nextTexts.join('\n')}>
      {transition !== undefined && <span class="chart-came">{transitionText(chart, transition)}</span>}
      {nextTexts.length > 0 && <> next: {nextTexts.join(' · ')}</>}
    </p>
  );
}

function Timers({ snapshot }: { snapshot: ActorSnapshot }): JSX.Element | null {
  const chart = definitionOf(snapshot.machine);
  if (chart === undefined || (snapshot.timers ?? []).length === 0) return null;
  return (
    <>
      {countdownsAt(chart, snapshot.timers ?? [], currentTime.value).map(({ timer, remainingShare, remainingMs }) => (
        <span class="chart-timer" key={timer}>
          <span class="chart-timer-bar" style={{ transform: `scaleX(${remainingShare.toFixed(4)})` }} />
          <span class="chart-timer-text">
            {timer}: {remainingTimeText(remainingMs)}
          </span>
        </span>
      ))}
    </>
  );
}

/** Replaces the picture of an actor that is not a machine, or whose machine is not in the trace's header. */
function NoPicture({ actor, machine }: { actor: string; machine: string | undefined }): JSX.Element {
  const parent = state.value?.actors.get(actor)?.parent;
  const history = [...firstItems(stepsOf(actor), 50)];
  return (
    <div class="chart-none">
      {machine === undefined ? (
        <p>
          {actor} is an effect (a promise, callback or observable actor). It has no statechart.{' '}
          {parent !== undefined && (
            <button type="button" onClick={() => chooseActor(parent)}>
              Show its parent, {parent}
            </button>
          )}
        </p>
      ) : (
        <p>
          No diagram of {machine}: {missingPictureReason(machine)}.
        </p>
      )}
      {history.length > 0 && (
        <ol class="chart-history" aria-label={`States of ${actor}, newest first`}>
          {history.map(({ index, record }) => (
            <li key={index}>
              <button type="button" onClick={() => goTo(index)}>
                <span class="chart-history-time">{clockText(record.t)}</span>
                <span>{record.kind === 'transition' ? record.to : 'no state change'}</span>
                <span class="chart-history-on">on {eventText(record.on)}</span>
              </button>
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}

function* firstItems<Item>(items: Iterable<Item>, count: number): Generator<Item> {
  let remainingCount = count;
  for (const item of items) {
    if (remainingCount-- <= 0) return;
    yield item;
  }
}
