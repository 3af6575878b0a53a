/** Scrolls to the lane of the current place, and counts bad marks of hidden lanes. */
import { signal, useSignalEffect } from '@preact/signals';
import type { JSX } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { place, recording } from '../model/place.ts';
import { countProblemMarks, laneOf, laneWithProblemAt } from '../model/recording/lane-at.ts';
import type { Lane } from '../model/recording/lanes.ts';
import { axis } from './timeline-view.ts';

export const laneHeight = 24;
export const axisHeight = 30;

/** In pixels from the top of the first lane. */
const visibleRange = signal({ top: 0, bottom: Number.POSITIVE_INFINITY });

/** Up to this number, all lanes have their bars and marks in the page. */
const maxWholeLanes = 30;
/** Hidden lanes above and below the visible ones that are rendered completely. */
const spareLanes = 6;
/** Used before the height of the timeline is known. */
const maxInitialRows = 24;

/** These rows have bars and marks in the page. */
export function rowsInView(lanes: number): { readonly first: number; readonly end: number } {
  if (lanes <= maxWholeLanes) return { first: 0, end: lanes };
  const { top, bottom } = visibleRange.value;
  const first = Math.floor(top / laneHeight) - spareLanes;
  const lastVisibleRow = Number.isFinite(bottom) ? Math.ceil(bottom / laneHeight) : maxInitialRows;
  return { first, end: lastVisibleRow + spareLanes };
}

type Scroller = { readonly current: HTMLDivElement | null };

export function useLanesInView(scroller: Scroller, lanes: { readonly value: readonly Lane[] }): () => void {
  const previousPlace = useRef(Number.NEGATIVE_INFINITY);
  const updateVisibleRows = (): void => {
    const element = scroller.current;
    if (element === null) return;
    const { scrollTop, clientHeight } = element;
    const nextRows = { top: scrollTop, bottom: scrollTop + clientHeight - axisHeight };
    if (nextRows.top !== visibleRange.peek().top || nextRows.bottom !== visibleRange.peek().bottom)
      visibleRange.value = nextRows;
  };
  useLayoutEffect(() => {
    const observer = new ResizeObserver(updateVisibleRows);
    observer.observe(scroller.current!);
    return () => observer.disconnect();
  }, []);
  useSignalEffect(() => {
    const currentIndex = place.value;
    const shownLanes = lanes.value;
    const record = recording.value?.recordAt(currentIndex);
    const hasJumped = Math.abs(currentIndex - previousPlace.current) > 1;
    previousPlace.current = currentIndex;
    // A step shows the lane of its record; a jump also shows the lane of a bad mark there.
    const lanesToShow = [
      laneOf(shownLanes, record, currentIndex),
      ...(hasJumped ? [laneWithProblemAt(shownLanes, currentIndex)] : []),
    ];
    for (const name of lanesToShow) {
      const row = shownLanes.findIndex((lane) => lane.name === name);
      if (row >= 0) showRow(scroller.current, row);
    }
    updateVisibleRows();
  });
  return updateVisibleRows;
}

function showRow(element: HTMLElement | null, row: number): void {
  if (element === null) return;
  const top = row * laneHeight;
  const visibleHeight = element.clientHeight - axisHeight;
  if (top < element.scrollTop) element.scrollTop = top;
  else if (top + laneHeight > element.scrollTop + visibleHeight)
    element.scrollTop = top + laneHeight - visibleHeight + 2;
}

/** Shows a text such as `↓ 3 lanes, ✕ 2`. Scrolls to the nearest hidden lane with bad marks, else to the nearest hidden lane. */
export function HiddenLanes({
  scroller,
  lanes,
}: {
  readonly scroller: Scroller;
  readonly lanes: readonly Lane[];
}): JSX.Element {
  const { top, bottom } = visibleRange.value;
  const isRowAbove = (row: number): boolean => row * laneHeight + laneHeight / 2 < top;
  const isRowBelow = (row: number): boolean => row * laneHeight + laneHeight / 2 > bottom;
  return (
    <>
      <HiddenLanesHint
        direction="above"
        rows={lanes.flatMap((lane, row) => (isRowAbove(row) ? [{ lane, row }] : []))}
        scroller={scroller}
      />
      <HiddenLanesHint
        direction="below"
        rows={lanes.flatMap((lane, row) => (isRowBelow(row) ? [{ lane, row }] : []))}
        scroller={scroller}
      />
    </>
  );
}

interface HintProps {
  readonly direction: 'above' | 'below';
  readonly rows: readonly { readonly lane: Lane; readonly row: number }[];
  readonly scroller: Scroller;
}

function HiddenLanesHint({ direction, rows, scroller }: HintProps): JSX.Element | null {
  const { from, to } = axis.value;
  const problemCounts = rows.map(({ lane, row }) => ({ row, bad: countProblemMarks(lane, from, to) }));
  const problemCount = problemCounts.reduce((sum, entry) => sum + entry.bad, 0);
  if (rows.length === 0) return null;
  const targetRow =
    (direction === 'above'
      ? problemCounts.findLast((entry) => entry.bad > 0)
      : problemCounts.find((entry) => entry.bad > 0)) ??
    (direction === 'above' ? problemCounts.at(-1) : problemCounts[0]);
  const arrow = direction === 'above' ? '↑' : '↓';
  const laneCount = `${rows.length} ${rows.length === 1 ? 'lane' : 'lanes'}`;
  return (
    <button
      type="button"
      class={`lanes-hint ${direction}`}
      data-bad={problemCount || undefined}
      aria-label={`${laneCount} ${direction}${problemCount > 0 ? `, with ${problemCount} ${problemCount === 1 ? 'problem' : 'problems'}` : ''}: scroll there`}
      onClick={() => showRow(scroller.current, targetRow!.row)}
    >
      {arrow} {laneCount}
      {problemCount > 0 && `, ✕ ${problemCount}`}
    </button>
  );
}
