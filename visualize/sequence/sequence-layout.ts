/** Where lifelines and arrows are, in pixels. */
import { textWidth } from '../../src/debugger/statechart/text-width.ts';
import { clockText } from '../model/recording/words.ts';
import type { Column, Columns } from './sequence-lifelines.ts';
import { columnFor } from './sequence-name.ts';
import type { Entry } from './sequence-rows.ts';

export const rowHeight = 26;
/**
 * Rows of a trace that are in the page at a time. Browsers lay out no element of more than some 33 million pixels, and beyond 16
 * million they place what is in it to two pixels.
 */
export const maxBodyRows = 500_000;
export const noteFont = { size: 12 };
export const labelFont = { size: 12, bold: true };
export const headHeight = 40;
/** Number and time of a record, where both are short; {@link gutterFor} others. */
export const leastGutter = 134;
/** Of a stamp: beside its texts, and the least for the number. */
const stampRoom = { around: 18, number: 34 };

/** How wide number and time of the records up to this one are: hours of a long trace are not cut. */
export function gutterFor(seq: number, t: number): number {
  const number = Math.max(stampRoom.number, textWidth(String(seq), noteFont));
  return Math.max(leastGutter, Math.ceil(stampRoom.around + number + textWidth(clockText(t), noteFont)));
}

/** A narrower view has no room for where the diagrams have a message. */
const narrow = 1_000;
/** Behind the last lifeline; what arrows there say begins further left. With room for where the diagrams have a message. */
const spareWidth = { narrow: 40, wide: 330 };
/** The least has room for `supervisor` in the font of the names. */
const columnWidth = { least: 84, wanted: 100, most: 190 };
const edge = 6;
/** Room for where the diagrams have a message. */
const placeWidth = 170;

export interface Layout {
  /** Where the first column begins: number and time of the records are left of it. */
  readonly gutter: number;
  readonly columnWidth: number;
  readonly width: number;
  /** Whether there is room for where the diagrams have a message. */
  readonly hasNotes: boolean;
}

/** @param least of a column, for the sake of its name */
export function layoutOf(
  columns: number,
  viewport: number,
  least: number = columnWidth.least,
  gutter: number = leastGutter,
): Layout {
  const hasNotes = viewport >= narrow;
  const behind = hasNotes ? spareWidth.wide : spareWidth.narrow;
  const room = (viewport - gutter - behind) / Math.max(1, columns);
  const width = Math.floor(Math.min(columnWidth.most, Math.max(columnWidth.least, least, room)));
  return { gutter, columnWidth: width, width: Math.max(viewport, gutter + width * columns + behind), hasNotes };
}

/** To measure names in each step would cost more than the step. */
const leastOf = new WeakMap<Columns, number>();

/** Of these columns, wide enough for their names. */
export function layoutFor(columns: Columns, viewport: number, gutter?: number): Layout {
  const { list } = columns;
  const least = leastOf.get(columns) ?? columnFor(list.map(({ family }) => family));
  leastOf.set(columns, least);
  return layoutOf(list.length, viewport, least, gutter);
}

/** How wide a view shows all lifelines well. */
export function widthFor(columns: number): number {
  return leastGutter + columnWidth.wanted * columns + spareWidth.narrow;
}

/** Where words begin that stand at a place: further left when they would go beyond the right edge, and how wide they may be. */
export function wordsAt(
  x: number,
  width: number,
  layout: Pick<Layout, 'gutter' | 'width' | 'hasNotes'>,
): { left: number; most: number } {
  const right = layout.width - edge - (layout.hasNotes ? placeWidth : 0);
  const left = Math.max(layout.gutter + edge, Math.min(x, right - width));
  return { left, most: right - left };
}

/** Right of an arrow back to its own lifeline, the words for it; left of it where there is more room. */
const [behindLoop, beforeLoop] = [30, 8];

/** As {@link wordsAt}, for an arrow back to its own lifeline: it is never covered by its words. */
export function wordsBeside(
  x: number,
  width: number,
  layout: Pick<Layout, 'gutter' | 'width' | 'hasNotes'>,
): ReturnType<typeof wordsAt> {
  const right = wordsAt(x + behindLoop, 0, layout);
  const roomBefore = x - beforeLoop - layout.gutter - edge;
  if (width <= right.most || roomBefore <= right.most) return right;
  const most = Math.min(width, roomBefore);
  return { left: x - beforeLoop - most, most };
}

/**
 * The first of the rows that are in the page: 0 where all of them are, else such that the row of the place is among them.
 *
 * @param before the last result: it stays as long as it may
 */
export function firstBodyRow(length: number, here: number, before: number): number {
  const last = Math.max(0, length - maxBodyRows);
  const isAmong = here < 0 || (here >= before && here < before + maxBodyRows);
  return Math.max(0, Math.min(isAmong ? before : here - maxBodyRows / 2, last));
}

/** Top of a row, in pixels. @param base the first row in the page */
export function topOf(row: number, base: number): number {
  return (row - base) * rowHeight;
}

/** A length for a style. */
export function px(length: number): string {
  return `${length}px`;
}

export function xOf(column: number, { gutter, columnWidth: width }: Pick<Layout, 'gutter' | 'columnWidth'>): number {
  return Math.round(gutter + width * (column + 0.5));
}

/** How an entry is drawn: a note on a lifeline, an arrow back to its own lifeline, or one between two. */
export type Drawn =
  | { readonly form: 'note' | 'self'; readonly x: number }
  | { readonly form: 'arrow'; readonly x: number; readonly length: number; readonly towards: 'left' | 'right' };

export function drawn(
  entry: Entry,
  columns: Columns,
  layout: Pick<Layout, 'gutter' | 'columnWidth'>,
): Drawn | undefined {
  const from = columns.of(entry.from);
  const to = columns.of(entry.to);
  if (from === undefined || to === undefined) return undefined;
  const x = xOf(from, layout);
  if (entry.kind === 'state' || entry.kind === 'effect') return { form: 'note', x };
  if (from === to) return { form: 'self', x };
  const target = xOf(to, layout);
  return {
    form: 'arrow',
    x: Math.min(x, target),
    length: Math.abs(target - x),
    towards: target > x ? 'right' : 'left',
  };
}

/** Of a note, or the box of who comes to be. */
export function noteWidth(text: string): number {
  return Math.ceil(textWidth(text, noteFont) + 18);
}

/** Where the middle of a note is: over its lifeline, unless it would reach into the gutter or beyond the right edge. */
export function noteMiddle(x: number, text: string, { gutter, width }: Pick<Layout, 'gutter' | 'width'>): number {
  const half = (textWidth(text, noteFont) + 18) / 2;
  return Math.max(gutter + edge + half, Math.min(x, width - edge - half));
}

/** Where a note begins. */
export function noteLeft(x: number, text: string, layout: Pick<Layout, 'gutter' | 'width'>): number {
  return Math.floor(noteMiddle(x, text, layout) - noteWidth(text) / 2);
}

/** Whether an actor's own lifeline is drawn, rather than the one of who it works for. */
export function hasLifeline(columns: Columns, lifeline: Entry['from']): boolean {
  const column: Column | undefined = columns.list[columns.of(lifeline) ?? -1];
  return column?.lifelines.includes(lifeline) ?? false;
}
