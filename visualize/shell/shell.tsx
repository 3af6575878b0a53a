import { effect, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { visibleLine } from '../../src/runtime/visible-text.ts';
import { Actors } from '../actors/actors.tsx';
import { ChartView } from '../chart/chart-view.tsx';
import { Details } from '../details/details.tsx';
import { FindingBar } from '../findings/finding-bar.tsx';
import { connection, source, sources } from '../model/connection.ts';
import { followsEnd, place, recording, size } from '../model/place.ts';
import { isPlaying } from '../model/playing.ts';
import type { PageRecording } from '../model/recording/recording.ts';
import { largePane } from '../parts/large-button.tsx';
import { shownColumns } from '../sequence/sequence-current.ts';
import { widthFor } from '../sequence/sequence-layout.ts';
import { SequenceView } from '../sequence/sequence-view.tsx';
import { Timeline } from '../timeline/timeline.tsx';
import { placeText, Transport } from '../timeline/transport.tsx';
import { Banners, OpeningBanner } from './banner.tsx';
import { ErrorBoundary } from './boundary.tsx';
import { DropZone } from './drop-zone.tsx';
import { Help } from './help.tsx';
import { Splitter } from './splitter.tsx';
import { Topbar } from './topbar.tsx';

export function Shell(): JSX.Element {
  return (
    // The complete page is main content, including step controls and pane borders.
    <main class="shell" data-large={largePane.value}>
      <Topbar />
      <Banners />
      <ErrorBoundary name="findings">
        <FindingBar />
      </ErrorBoundary>
      {recording.value === undefined ? <OpeningBanner /> : isWithoutRun(recording.value) ? <ChartsOnly /> : <Views />}
      <Announcement />
      <Help />
      <DropZone />
    </main>
  );
}

/** Machines without a run: `chartpilot diagram --open`. */
function isWithoutRun({ length }: PageRecording): boolean {
  return length === 0 && connection.value.kind === 'complete';
}

function ChartsOnly(): JSX.Element {
  return (
    <div class="panes charts-alone">
      <ActorsAndChart />
    </div>
  );
}

function ActorsAndChart(): JSX.Element {
  return (
    <>
      <ErrorBoundary name="actors">
        <Actors />
      </ErrorBoundary>
      <Splitter
        name="actors-width"
        label="Width of the actors pane"
        axis="x"
        paneSide="before"
        minSize={180}
        maxSize={480}
      />
      <section class="pane chart-pane" aria-label="Statechart">
        <ErrorBoundary name="statechart">
          <ChartView />
        </ErrorBoundary>
      </section>
    </>
  );
}

function Views(): JSX.Element {
  return (
    <>
      <div class="panes" style={{ '--lanes-width': `${widthFor(shownColumns.value.list.length)}px` }}>
        <ActorsAndChart />
        <Splitter
          name="sequence-width"
          label="Width of the sequence pane"
          axis="x"
          paneSide="behind"
          minSize={240}
          maxSize={1_000}
        />
        <section class="pane sequence-pane" aria-label="Sequence">
          <ErrorBoundary name="sequence">
            <SequenceView />
          </ErrorBoundary>
        </section>
      </div>
      <Splitter
        name="timeline-height"
        label="Height of the timeline pane"
        axis="y"
        paneSide="behind"
        minSize={96}
        maxSize={420}
      />
      <ErrorBoundary name="timeline">
        <Timeline />
      </ErrorBoundary>
      <Transport />
      <Splitter
        name="details-height"
        label="Height of the details pane"
        axis="y"
        paneSide="behind"
        minSize={80}
        maxSize={600}
      />
      <ErrorBoundary name="details">
        <Details />
      </ErrorBoundary>
    </>
  );
}

export function startTitle(): void {
  effect(() => {
    size.value;
    const name = sources.value[source.value]?.name;
    const hasDeviation = (recording.value?.deviations.length ?? 0) > 0;
    document.title = `${hasDeviation ? '⚠ ' : ''}${name === undefined ? '' : `${visibleLine(name)} · `}chartpilot`;
  });
}

const announcedText = signal('');
/** Speech is slower than key presses, so only a record at which the user stays is announced. */
const settleMs = 300;

/** Announces records to screen readers when the user steps to them, but not during playback. */
export function startAnnouncing(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  effect(() => {
    place.value;
    clearTimeout(timer);
    if (isPlaying.value || followsEnd.value) return;
    timer = setTimeout(() => {
      announcedText.value = placeText();
    }, settleMs);
  });
}

function Announcement(): JSX.Element {
  return (
    <div class="hidden" aria-live="polite" id="announcement">
      {announcedText.value}
    </div>
  );
}
