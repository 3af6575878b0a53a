import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { isInChain } from '../model/causal-chain.ts';
import { followsEnd, goTo, place, recording, size } from '../model/place.ts';
import { shownColumns, shownRows } from './sequence-current.ts';
import {
  drawnEntryOf as drawnForm,
  firstBodyRow,
  gutterFor,
  headHeight,
  type Layout,
  layoutFor,
  maxBodyRows,
  px,
  rowHeight,
  rowTop,
} from './sequence-layout.ts';
import type { Columns } from './sequence-lifelines.ts';
import { SequenceHead, SequenceLifelines } from './sequence-lines.tsx';
import { SequenceRow, SequenceStamp } from './sequence-row.tsx';
import type { SequenceRows } from './sequence-rows.ts';
import { SequenceTools } from './sequence-tools.tsx';

/** Rows rendered above and below the visible ones, so that quick scrolling shows no blank area. */
const spareRows = 10;

export function SequenceView(): JSX.Element {
  const scroller = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const viewportSize = useSignal({ width: 900, height: 600 });
  useSize(scroller, (width, height) => {
    viewportSize.value = { width, height };
  });
  const currentRows = shownRows.value;
  const columns = shownColumns.value;
  const layout = shownLayout(columns, viewportSize.value.width);
  const length = currentRows?.length ?? 0;
  const currentRowIndex = currentRows?.rows.rowOf(place.value) ?? -1;
  const base = useFirstBodyRow(length, currentRowIndex);
  const rowsInPage = Math.min(length - base, maxBodyRows);
  const first = base + Math.max(0, Math.floor(top.value / rowHeight) - spareRows);
  const end = base + Math.min(rowsInPage, Math.ceil((top.value + viewportSize.value.height) / rowHeight) + spareRows);
  usePlaceInView(
    scroller,
    currentRowIndex,
    base,
    currentRows?.rows,
    `${viewportSize.value.width} ${viewportSize.value.height} ${columns.list.length}`,
  );
  const drawnRows = useDrawnRows(columns, layout, base)(currentRows?.rows, first, end, currentRowIndex);
  return (
    <section class="sequence-view" aria-label="Messages">
      <SequenceTools />
      <div
        class="sequence-scroll"
        ref={scroller}
        style={{ '--seen-width': px(viewportSize.value.width), '--gutter': px(layout.gutter) }}
        onScroll={(event) => {
          const { scrollTop, scrollLeft, style } = event.currentTarget;
          top.value = scrollTop;
          if (style.getPropertyValue('--scrolled') !== px(scrollLeft)) style.setProperty('--scrolled', px(scrollLeft));
        }}
      >
        <div class="sequence-page" style={{ width: px(layout.width) }}>
          <SequenceHead columns={columns} layout={layout} />
          <div
            class="sequence-body"
            style={{ height: px(rowsInPage * rowHeight) }}
            tabIndex={0}
            role="listbox"
            aria-label="Messages between actors, oldest first"
            aria-activedescendant={
              currentRowIndex >= first && currentRowIndex < end ? `sequence-row-${currentRowIndex}` : undefined
            }
            onKeyDown={onKey}
          >
            {currentRows !== undefined && (
              <SequenceLifelines
                rows={currentRows.rows}
                columns={columns}
                layout={layout}
                base={base}
                first={first}
                end={end}
              />
            )}
            {drawnRows.rows}
            <div class="sequence-stamps" aria-hidden="true">
              {drawnRows.stamps}
            </div>
          </div>
        </div>
      </div>
      {rowsInPage < length && (
        <p class="sequence-more muted">
          {maxBodyRows.toLocaleString('en')} of {length.toLocaleString('en')} rows are shown. Step on, or move the
          slider, to see the others.
        </p>
      )}
      {length === 0 && (
        <p class="sequence-none">{size.value === 0 ? 'No messages yet.' : 'No messages match the filters.'}</p>
      )}
    </section>
  );
}

/** Changes when the current place leaves the page's rows. */
function useFirstBodyRow(length: number, currentRowIndex: number): number {
  const base = useRef(0);
  base.current = firstBodyRow(length, currentRowIndex, base.current);
  return base.current;
}

interface DrawnRows {
  readonly rows: JSX.Element[];
  readonly stamps: JSX.Element[];
}

/** An unchanged row is the same node, so Preact skips it. */
function useDrawnRows(
  columns: Columns,
  layout: Layout,
  base: number,
): (rows: SequenceRows | undefined, first: number, end: number, here: number) => DrawnRows {
  const keptNodes = useRef<{ builtFrom: unknown[]; nodes: Map<string, readonly [JSX.Element, JSX.Element]> }>({
    builtFrom: [],
    nodes: new Map(),
  });
  return (rows, first, end, currentRowIndex) => {
    if (rows === undefined) return { rows: [], stamps: [] };
    const dependencies = [rows, columns, base, layout.columnWidth, layout.width, layout.hasNotes];
    const isUnchanged = dependencies.every((value, i) => value === keptNodes.current.builtFrom[i]);
    const previousNodes: typeof keptNodes.current.nodes = isUnchanged ? keptNodes.current.nodes : new Map();
    const nodes: typeof previousNodes = new Map();
    for (let rowIndex = first; rowIndex < end; rowIndex++) {
      const mark =
        rowIndex !== currentRowIndex ? undefined : rows.row(rowIndex).entry.index === place.value ? 'here' : 'near';
      const { entry, line } = rows.row(rowIndex);
      const isInShownChain = line === 0 && isInChain(entry.index);
      const key = `${rowIndex} ${mark} ${isInShownChain}`;
      const node = previousNodes.get(key) ?? [
        <SequenceRow
          key={rowIndex}
          rowNumber={rowIndex}
          base={base}
          rows={rows}
          columns={columns}
          layout={layout}
          currentMark={mark}
          isInShownChain={isInShownChain}
        />,
        <SequenceStamp
          key={rowIndex}
          rowNumber={rowIndex}
          base={base}
          rows={rows}
          currentMark={mark}
          isInShownChain={isInShownChain}
        />,
      ];
      nodes.set(key, node);
    }
    keptNodes.current = { builtFrom: dependencies, nodes };
    const drawnNodes = [...nodes.values()];
    return { rows: drawnNodes.map(([row]) => row), stamps: drawnNodes.map(([, stamp]) => stamp) };
  };
}

/** The page handles keys other than up and down. */
function onKey(event: KeyboardEvent): void {
  const rows = shownRows.peek()?.rows;
  const offset = ({ ArrowUp: -1, ArrowDown: 1, PageUp: -15, PageDown: 15 } as Record<string, number>)[event.key];
  if (rows === undefined || offset === undefined || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey)
    return;
  event.preventDefault();
  event.stopPropagation();
  const currentRow = rows.rowOf(place.peek());
  // From a record between two rows, a step up goes to the row above.
  const isBetweenRows = currentRow !== -1 && rows.row(currentRow).entry.index !== place.peek();
  let nextRow = isBetweenRows && offset < 0 ? currentRow + offset + 1 : currentRow + offset;
  nextRow = Math.max(0, Math.min(rows.length - 1, nextRow));
  while (nextRow > 0 && nextRow < rows.length - 1 && rows.row(nextRow).line !== 0) nextRow += Math.sign(offset);
  if (rows.length > 0) goTo(rows.row(nextRow).entry.index);
}

function shownLayout(columns: Columns, viewport: number): Layout {
  const openRecording = recording.peek();
  const lastRecord = size.value - 1;
  return layoutFor(
    columns,
    viewport,
    openRecording && lastRecord >= 0
      ? gutterFor(openRecording.seqAt(lastRecord) ?? 0, openRecording.timeAt(lastRecord) ?? 0)
      : undefined,
  );
}

/** Keeps the row of the current place in view, unless the user has scrolled away from the end of a live trace. */
function usePlaceInView(
  scroller: { readonly current: HTMLDivElement | null },
  row: number,
  base: number,
  rows: unknown,
  viewKey: string,
): void {
  const previousRow = useRef(-1);
  useLayoutEffect(() => {
    const element = scroller.current;
    const previous = previousRow.current;
    previousRow.current = row;
    if (element === null || row === -1) return;
    const top = element.scrollTop;
    const visibleHeight = element.clientHeight - headHeight;
    const isRowVisible = (rowIndex: number): boolean =>
      rowTop(rowIndex, base) >= top && rowTop(rowIndex + 1, base) <= top + visibleHeight;
    if (followsEnd.peek() && previous !== -1 && previous !== row && !isRowVisible(previous)) return;
    scrollHorizontallyTo(element, row);
    if (isRowVisible(row)) return;
    const isNearViewport = Math.abs(rowTop(row, base) - (top + visibleHeight / 2)) < visibleHeight;
    const margin = 3 * rowHeight;
    const isBelowTop = rowTop(row, base) >= top;
    // A distant row is scrolled near the top, where it is visible even if the window ends within the view.
    element.scrollTop =
      isNearViewport && isBelowTop ? rowTop(row + 1, base) - visibleHeight + margin : rowTop(row, base) - margin;
  }, [row, base, rows, viewKey]);
}

function scrollHorizontallyTo(element: HTMLElement, row: number): void {
  const rows = shownRows.peek()?.rows;
  const columns = shownColumns.peek();
  if (rows === undefined || row >= rows.length) return;
  const form = drawnForm(rows.row(row).entry, columns, shownLayout(columns, element.clientWidth));
  if (form === undefined) return;
  const { scrollLeft, clientWidth } = element;
  const layout = shownLayout(columns, clientWidth);
  const maxScroll = form.x - layout.gutter - 30;
  const minScroll = form.x + (form.form === 'arrow' ? form.length : 0) + 40 - clientWidth;
  // A part of an arrow wider than the view is visible at every position between its ends.
  const [lowScroll, highScroll] = [Math.min(minScroll, maxScroll), Math.max(minScroll, maxScroll)];
  if (scrollLeft >= lowScroll && scrollLeft <= highScroll) return;
  const neighbourPositions = Array.from({ length: 2 * maxNeighbours + 1 }, (_, i) => row - maxNeighbours + i)
    .filter((rowIndex) => rowIndex >= 0 && rowIndex < rows.length)
    .flatMap((rowIndex) => drawnForm(rows.row(rowIndex).entry, columns, layout) ?? [])
    .map((shape) => shape.x + (shape.form === 'arrow' ? shape.length / 2 : 0))
    .sort((a, b) => a - b);
  // If possible, arrows of neighbouring rows become visible, too.
  const target =
    neighbourPositions[neighbourPositions.length >> 1]! - layout.gutter - (clientWidth - layout.gutter) / 2;
  element.scrollLeft = Math.max(lowScroll, Math.min(target, highScroll));
}

const maxNeighbours = 6;

function useSize(
  scroller: { readonly current: HTMLElement | null },
  report: (width: number, height: number) => void,
): void {
  useEffect(() => {
    const element = scroller.current!;
    const observer = new ResizeObserver(() => report(element.clientWidth, element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
}
