import type { JSX } from 'preact';
import { place, range, recording } from '../model/place.ts';
import { recordText } from '../model/recording/words.ts';
import { setRangeEnd } from './timeline-place.ts';
import { timeOf, width, xOf } from './timeline-view.ts';

/** A separate component, so that a step does not redraw the timeline. */
export function Playhead(): JSX.Element | null {
  const openRecording = recording.value;
  if (openRecording === undefined) return null;
  const x = xOf(openRecording.timeAt(place.value));
  return <div class="playhead" hidden={x < -1 || x > width.value + 1} style={{ transform: `translateX(${x}px)` }} />;
}

/** The ends of the range can be dragged, and moved with the arrow keys. */
export function RangeShade(): JSX.Element | null {
  const openRecording = recording.value;
  if (openRecording === undefined || range.value === undefined) return null;
  const [first, last] = range.value;
  const leftX = Math.max(0, xOf(openRecording.timeAt(first)));
  const rightX = Math.min(width.value, xOf(openRecording.timeAt(last)));
  return (
    <>
      <div class="shade" style={{ left: 0, width: `${leftX}px` }} />
      <div class="shade" style={{ left: `${rightX}px`, right: 0 }} />
      <RangeHandle rangeEnd="first" index={first} x={leftX} />
      <RangeHandle rangeEnd="last" index={last} x={rightX} />
    </>
  );
}

function RangeHandle({
  rangeEnd,
  index,
  x,
}: {
  readonly rangeEnd: 'first' | 'last';
  readonly index: number;
  readonly x: number;
}): JSX.Element {
  const openRecording = recording.value!;
  const record = openRecording.recordAt(index);
  const move = (downEvent: PointerEvent): void => {
    downEvent.stopPropagation();
    const handle = downEvent.currentTarget as HTMLElement;
    const leftX = handle.parentElement!.getBoundingClientRect().left;
    handle.setPointerCapture(downEvent.pointerId);
    handle.onpointermove = (event) => {
      const t = timeOf(event.clientX - leftX);
      setRangeEnd(rangeEnd, openRecording.placeAt(t) + (rangeEnd === 'first' ? 1 : 0));
    };
    handle.onpointerup = () => {
      handle.onpointermove = null;
      handle.onpointerup = null;
    };
  };
  return (
    <div
      class={`range-handle ${rangeEnd}`}
      role="slider"
      tabIndex={0}
      aria-label={rangeEnd === 'first' ? 'First record of the range' : 'Last record of the range'}
      aria-valuemin={0}
      aria-valuemax={openRecording.length - 1}
      aria-valuenow={index}
      aria-valuetext={record === undefined ? '' : `record ${record.seq}, ${recordText(record)}`}
      style={{ transform: `translateX(${x}px)` }}
      onPointerDown={move}
      onKeyDown={(event) => {
        const offset = event.key === 'ArrowLeft' ? -1 : event.key === 'ArrowRight' ? 1 : 0;
        if (offset === 0) return;
        event.preventDefault();
        event.stopPropagation();
        setRangeEnd(rangeEnd, index + offset);
      }}
    />
  );
}
