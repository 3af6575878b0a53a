/** Positions of lifelines and arrows, in pixels. */
import { textWidth } from '../../src/debugger/statechart/text-width.ts';
import { clockText } from '../model/recording/words.ts';
import type { Column, Columns } from './sequence-lifelines.ts';
import { columnFor } from './sequence-name.ts';
import type { Entry } from './sequence-rows.ts';

export const rowHeight = 26;
/**
 * Maximum rows in the page at a time. Browsers limit elements to some 33 million pixels, and beyond 16 million they
 * place content only to two pixels.
 */
export const maxBodyRows = 500_000;
export const noteFont = { size: 12 };
export const labelFont = { size: 12, bold: true };
export const headHeight = 40;
/** Width for number and time of a record if both are short; see {@link gutterFor}. */
export const leastGutter = 134;
/** Widths of a stamp: the space around its texts, and the minimum for the number. */
const stampRoom = { around: 18, number: 34 };

/** Width for number and time of the records up to this one, so that hours of a long trace are not cut. */
export function gutterFor(seq: number, t: number): number {
  const number = Math.max(stampRoom.number, textWidth(String(seq), noteFont));
  return Math.max(leastGutter, Math.ceil(stampRoom.around + number + textWidth(clockText(t), noteFont)));
}

/** Narrower views do not show the places in the diagrams. */
const narrow = 1_000;
/**
 * Space after the last lifeline; labels of arrows there begin further left. The wide one includes the places in the
 * diagrams.
 */
const spareWidth = { narrow: 40, wide: 330 };
/** The minimum fits `supervisor` in the font of the names. */
const columnWidth = { least: 84, wanted: 100, most: 190 };
const edge = 6;
/** Space for the places in the diagrams. */
const placeWidth = 170;

export interface Layout {
  /** Start of the first column; number and time of the records are left of it. */
  readonly gutter: number;
  readonly columnWidth: number;
  readonly width: number;
  /** Whether there is space for the places in the diagrams. */
  readonly hasNotes: boolean;
}

/** @param least minimum width of a column, for its name */
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

/** Cached, because measuring names in each step would cost more than the step. */
const leastOf = new WeakMap<Columns, number>();

/** The layout of these columns, wide enough for their names. */
export function layoutFor(columns: Columns, viewport: number, gutter?: number): Layout {
  const { list } = columns;
  const least = leastOf.get(columns) ?? columnFor(list.map(({ family }) => family));
  leastOf.set(columns, least);
  return layoutOf(list.length, viewport, least, gutter);
}

/** Width at which a view shows all lifelines well. */
export function widthFor(columns: number): number {
  return leastGutter + columnWidth.wanted * columns + spareWidth.narrow;
}

/** Start and maximum width of a label at a position: it moves left if it would exceed the right edge. */
export function wordsAt(
  x: number,
  width: number,
  layout: Pick<Layout, 'gutter' | 'width' | 'hasNotes'>,
): { left: number; most: number } {
  const right = layout.width - edge - (layout.hasNotes ? placeWidth : 0);
  const left = Math.max(layout.gutter + edge, Math.min(x, right - width));
  return { left, most: right - left };
}

/** Right of an arrow back to its own lifeline, or left of it if there is more space. */
const [behindLoop, beforeLoop] = [30, 8];

/** As {@link wordsAt}, for an arrow back to its own lifeline, which its label must not cover. */
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
 * The first of the rows in the page: 0 if all fit, otherwise such that the row of the current place is included.
 *
 * @param before the last result, which is kept if possible
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

/** Width of a note, or of the box of a spawned actor. */
export function noteWidth(text: string): number {
  return Math.ceil(textWidth(text, noteFont) + 18);
}

/** Centre of a note: on its lifeline, unless it would reach into the gutter or beyond the right edge. */
export function noteMiddle(x: number, text: string, { gutter, width }: Pick<Layout, 'gutter' | 'width'>): number {
  const half = (textWidth(text, noteFont) + 18) / 2;
  return Math.max(gutter + edge + half, Math.min(x, width - edge - half));
}

/** Start of a note. */
export function noteLeft(x: number, text: string, layout: Pick<Layout, 'gutter' | 'width'>): number {
  return Math.floor(noteMiddle(x, text, layout) - noteWidth(text) / 2);
}

/** Whether an actor's own lifeline is drawn, rather than that of its owner. */
export function hasLifeline(columns: Columns, lifeline: Entry['from']): boolean {
  const column: Column | undefined = columns.list[columns.of(lifeline) ?? -1];
  return column?.lifelines.includes(lifeline) ?? false;
}
