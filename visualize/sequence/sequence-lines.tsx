import type { JSX } from 'preact';
import { chooseActor, chosenActor, place } from '../model/place.ts';
import { type Layout, px, rowHeight, xOf } from './sequence-layout.ts';
import { type Column, type Columns, lifeAt, livesWithin, titleOf } from './sequence-lifelines.ts';
import { nameLines, namePadding } from './sequence-name.ts';
import type { SequenceRows } from './sequence-rows.ts';

export function SequenceHead({ columns, layout }: { columns: Columns; layout: Layout }): JSX.Element {
  return (
    // Visual only: each row names its actors, and an actor can be chosen in the list of actors.
    <div class="sequence-head" aria-hidden="true">
      <span class="sequence-corner" style={{ width: px(layout.gutter) }}>
        <span>#</span>
        <span>time</span>
      </span>
      {columns.list.map((column, columnIndex) => (
        <HeadName
          key={column.lifelines[0]!.id}
          column={column}
          x={xOf(columnIndex, layout)}
          width={layout.columnWidth}
        />
      ))}
    </div>
  );
}

function HeadName({ column, x, width }: { column: Column; x: number; width: number }): JSX.Element {
  const name = titleOf(column, place.value);
  const { isRest = false } = column;
  const isAlive = isRest || column.lifelines.some((lifeline) => lifeAt(lifeline, place.value) !== undefined);
  const hasOneLifeline = column.lifelines.length === 1 && !isRest;
  const classes = [
    'sequence-name',
    isAlive ? 'lives' : '',
    hasOneLifeline && name === chosenActor.value ? 'chosen' : '',
  ];
  return (
    <button
      type="button"
      class={classes.filter(Boolean).join(' ')}
      style={{ left: px(x - width / 2 + 2), width: px(width - 4) }}
      aria-label={name}
      title={
        isRest
          ? `${name}: actors without a lifeline of their own. Select an actor to show its lifeline`
          : isAlive
            ? name
            : `${name} is not active at this record`
      }
      tabIndex={-1}
      disabled={!hasOneLifeline}
      onClick={() => chooseActor(name)}
    >
      {nameLines(name, width - namePadding).map((line) => (
        <span key={line}>{line}</span>
      ))}
    </button>
  );
}

interface LinesProps {
  rows: SequenceRows;
  columns: Columns;
  layout: Layout;
  /** First row in the page, then the range of drawn rows. */
  base: number;
  first: number;
  end: number;
}

export function SequenceLifelines({ rows, columns, layout, base, first, end }: LinesProps): JSX.Element | null {
  if (end <= first) return null;
  const firstIndex = rows.row(first).entry.index;
  const lastIndex = rows.row(end - 1).entry.index;
  return (
    <>
      {columns.list.map((column, columnIndex) => (
        <div key={column.lifelines[0]!.id} aria-hidden="true">
          {livingRanges(column, rows, firstIndex, lastIndex).map(([from, to]) => (
            <div
              key={from}
              class="sequence-lifeline"
              style={{
                left: px(xOf(columnIndex, layout)),
                ...lineStyle(from - base, to - base, first - base, end - base),
              }}
            />
          ))}
        </div>
      ))}
    </>
  );
}

function lineStyle(from: number, to: number, first: number, end: number): { top: string; height: string } {
  const top = from >= first ? (from + 0.5) * rowHeight : first * rowHeight;
  const bottom = to < end ? (to + 0.5) * rowHeight : end * rowHeight;
  return { top: px(top), height: px(Math.max(0, bottom - top)) };
}

/** Many lifelines in one column are drawn as one. */
function livingRanges(column: Column, rows: SequenceRows, first: number, last: number): (readonly [number, number])[] {
  if (column.lifelines.length > 1) {
    // Not `Math.min(...)`, because there may be a million lifelines.
    const firstBeginIndex = column.lifelines.reduce(
      (first, { lives }) => Math.min(first, lives[0]!.begin),
      Number.POSITIVE_INFINITY,
    );
    return [[firstBeginIndex < 0 ? 0 : rows.rowsBefore(firstBeginIndex), rows.length]];
  }
  return livesWithin(column.lifelines[0]!, first, last).map(
    ({ begin, end }) => [begin < 0 ? 0 : rows.rowsBefore(begin), rows.rowsBefore(end)] as const,
  );
}
