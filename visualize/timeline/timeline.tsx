import { useComputed } from '@preact/signals';
import type { JSX, TargetedPointerEvent, TargetedWheelEvent } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { lifePhases } from '../../machines/timeline.ts';
import { chosenActor, range, recording, size } from '../model/place.ts';
import type { Lane, MarkKind } from '../model/recording/lanes.ts';
import { durationText } from '../model/recording/words.ts';
import { drawnLanes, lanesIn } from '../model/time/drawn-lane.ts';
import { Icon } from '../parts/icon.tsx';
import { LargeButton } from '../parts/large-button.tsx';
import { MarkSign, markNames } from '../parts/mark-shape.tsx';
import { moreText } from '../parts/more.ts';
import { ChainPath } from './timeline-chain.tsx';
import { Flags } from './timeline-flags.tsx';
import { Folds, IdleSwitch } from './timeline-folds.tsx';
import { onLaneKey } from './timeline-keys.ts';
import { Axis, EmptyLaneRow, LaneRow } from './timeline-lane.tsx';
import { scrubTo, selectBetween } from './timeline-place.ts';
import { Playhead, RangeShade } from './timeline-range.tsx';
import { HiddenLanes, rowsInView, useLanesInView } from './timeline-scroll.tsx';
import {
  axis,
  endTime,
  fitView,
  isZoomedIn,
  pan,
  pointerX,
  timeOf,
  view,
  width,
  zoomAt,
  zoomBy,
} from './timeline-view.ts';

export function Timeline(): JSX.Element {
  const track = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const drawnLanes = useLanes();
  const lanes = useComputed(() => drawnLanes.value.lanes);
  const onScroll = useLanesInView(scroller, lanes);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      width.value = Math.max(50, Math.floor(entry!.contentRect.width));
    });
    observer.observe(track.current!);
    return () => observer.disconnect();
  }, []);
  return (
    <section class="pane timeline" aria-labelledby="timeline-heading" style={{ '--lanes': lanes.value.length }}>
      <header class="pane-head">
        <h2 id="timeline-heading">Timeline</h2>
        <DurationLabel />
        <Legend />
        <span class="grow" />
        <RangeText />
        <IdleSwitch />
        <ZoomButtons />
        <LargeButton pane="timeline" />
      </header>
      <div class="lanes scroll" ref={scroller} onScroll={onScroll}>
        <Names lanes={lanes.value} leftOut={drawnLanes.value.leftOut} />
        <div class="track" ref={track} {...trackGestures()}>
          <Axis />
          <Folds />
          <Rows lanes={lanes.value} />
          <RangeShade />
          <Flags />
          <ChainPath lanes={lanes.value} />
          <Playhead />
        </div>
      </div>
      <HiddenLanes scroller={scroller} lanes={lanes.value} />
    </section>
  );
}

function trackGestures(): {
  onPointerDown: (event: TargetedPointerEvent<HTMLDivElement>) => void;
  onWheel: (event: TargetedWheelEvent<HTMLDivElement>) => void;
  onPointerMove: (event: TargetedPointerEvent<HTMLDivElement>) => void;
  onPointerLeave: () => void;
} {
  const timeAtPointer = (event: PointerEvent | WheelEvent, track: HTMLElement): number => timeOf(offsetX(event, track));
  return {
    onPointerDown: (downEvent) => {
      if (downEvent.button !== 0) return;
      const track = downEvent.currentTarget;
      const from = timeAtPointer(downEvent, track);
      const go = (to: number): void => (downEvent.shiftKey ? selectBetween(from, to) : scrubTo(to));
      track.setPointerCapture(downEvent.pointerId);
      if (!downEvent.shiftKey) scrubTo(from);
      track.onpointermove = (move) => go(timeAtPointer(move, track));
      track.onpointerup = () => {
        track.onpointermove = null;
        track.onpointerup = null;
      };
    },
    onWheel: (wheel) => {
      const track = wheel.currentTarget;
      const isHorizontal =
        Math.abs(wheel.deltaX) > Math.abs(wheel.deltaY) ? wheel.deltaX : wheel.shiftKey ? wheel.deltaY : 0;
      if (isHorizontal !== 0) pan(((view.value.to - view.value.from) * isHorizontal) / width.value);
      else if (wheel.ctrlKey || isOverAxis(wheel, track)) zoomAt(offsetX(wheel, track), 1.0018 ** wheel.deltaY);
      // Otherwise the wheel scrolls lanes that do not fit.
      else return;
      wheel.preventDefault();
    },
    onPointerMove: (event) => {
      pointerX.value = event.pointerType === 'mouse' ? offsetX(event, event.currentTarget) : undefined;
    },
    onPointerLeave: () => {
      pointerX.value = undefined;
    },
  };
}

function offsetX(event: MouseEvent, track: HTMLElement): number {
  return event.clientX - track.getBoundingClientRect().left;
}

function isOverAxis(event: MouseEvent, track: HTMLElement): boolean {
  return event.clientY <= (track.querySelector('.axis')?.getBoundingClientRect().bottom ?? 0);
}

function Names({ lanes, leftOut }: ReturnType<typeof drawnLanes>): JSX.Element {
  const omittedText = moreText(leftOut, 'zoom in, or select an actor');
  return (
    <ul class="lane-names" aria-label="Lanes">
      <li class="axis-name">time</li>
      {lanes.map(({ name, title }) => (
        <li key={name}>
          <span title={title}>{title}</span>
        </li>
      ))}
      {leftOut > 0 && (
        <li class="lanes-more" title={omittedText}>
          {omittedText}
        </li>
      )}
    </ul>
  );
}

function Rows({ lanes }: { readonly lanes: readonly Lane[] }): JSX.Element {
  size.value;
  const { first, end } = rowsInView(lanes.length);
  return (
    // biome-ignore lint/a11y/useSemanticElements: lanes are no form's group
    <div
      class="lane-rows"
      role="group"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: one stop of the tab key for all that is in the lanes
      tabIndex={0}
      aria-label="Phases and marks; arrow keys move between them, Enter goes to the record"
      onKeyDown={onLaneKey}
    >
      {lanes.map((lane, row) =>
        row >= first && row < end ? (
          <LaneRow key={lane.name} lane={lane} version={recording.value?.lanes.version ?? 0} />
        ) : (
          <EmptyLaneRow key={lane.name} name={lane.name} />
        ),
      )}
    </div>
  );
}

function useLanes(): { readonly value: ReturnType<typeof drawnLanes> } {
  return useComputed(() => {
    // A change in trace size may have added lanes.
    size.value;
    return drawnLanes(lanesIn(recording.value?.lanes.lanes ?? [], axis.value), axis.value, chosenActor.value);
  });
}

function DurationLabel(): JSX.Element {
  const openRecording = recording.value;
  return (
    <span class="muted">
      {openRecording === undefined ? '' : durationText(endTime.value - openRecording.timeAt(0))}
    </span>
  );
}

const phasesInOrder: readonly string[] = [...lifePhases, 'building'];
const maxLegendPhases = 12;

function Legend(): JSX.Element | null {
  size.value;
  const lanes = recording.value?.lanes;
  if (lanes === undefined) return null;
  const phases = phasesInOrder.filter((phase) => lanes.phases.has(phase));
  for (const phase of lanes.phases) {
    if (phases.length === maxLegendPhases) break;
    if (!phasesInOrder.includes(phase)) phases.push(phase);
  }
  const omittedCount = lanes.phases.size - phases.length;
  const kinds = (Object.keys(markNames) as MarkKind[]).filter((kind) => lanes.kinds.has(kind));
  if (phases.length + kinds.length === 0) return null;
  // The names of the other states appear in the bars.
  return (
    <ul class="legend" aria-label="Legend">
      {phases.map((phase) => (
        <li key={phase}>
          <span class="swatch" data-phase={phase} data-tone={lanes.colourOf(phase)} />
          {phase}
        </li>
      ))}
      {omittedCount > 0 && <li>{moreText(omittedCount, '')}</li>}
      {kinds.map((kind) => (
        <li key={kind}>
          <MarkSign kind={kind} />
          {markNames[kind]}
        </li>
      ))}
    </ul>
  );
}

function RangeText(): JSX.Element {
  const openRecording = recording.value;
  if (openRecording === undefined || range.value === undefined) {
    return <span class="muted hint">Shift + drag to select a range</span>;
  }
  const [first, last] = range.value;
  return (
    <span class="range-text">
      <span>
        records {openRecording.seqAt(first)}–{openRecording.seqAt(last)},{' '}
        {durationText(openRecording.timeAt(last) - openRecording.timeAt(first))}
      </span>
      <button
        type="button"
        class="quiet"
        aria-label="Clear range"
        title="Clear range"
        onClick={() => {
          range.value = undefined;
        }}
      >
        <Icon name="close" />
      </button>
    </span>
  );
}

function ZoomButtons(): JSX.Element {
  const zoomedIn = isZoomedIn.value;
  return (
    <span class="buttons">
      <button type="button" class="quiet" aria-label="Zoom in" title="Zoom in (+)" onClick={() => zoomBy(0.5)}>
        <Icon name="nearer" />
      </button>
      <button
        type="button"
        class="quiet"
        aria-label="Zoom out"
        title="Zoom out (−)"
        disabled={!zoomedIn}
        onClick={() => zoomBy(2)}
      >
        <Icon name="farther" />
      </button>
      <button
        type="button"
        class="quiet"
        aria-label="Show all"
        title="Show all (0)"
        disabled={!zoomedIn}
        onClick={fitView}
      >
        <Icon name="fit" />
      </button>
    </span>
  );
}
