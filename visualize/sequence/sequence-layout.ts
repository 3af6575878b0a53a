import { textWidth } from '../../src/debugger/statechart/text-width.ts';
import { clockText } from '../model/recording/words.ts';
import type { Column, Columns } from './sequence-lifelines.ts';
import { columnWidthFor } from './sequence-name.ts';
import type { Entry } from './sequence-rows.ts';

export const rowHeight = 26;
/** Beyond 16 million pixels, browsers position content only to two pixels. */
export const maxBodyRows = 500_000;
export const noteFont = { size: 12 };
export const labelFont = { size: 12, bold: true };
export const headHeight = 40;
/** Minimum width for the number and time of a record; see {@link gutterFor}. */
export const minGutter = 134;
/** Space around the texts of a stamp, and minimum width of its number. */
const stampWidths = { around: 18, number: 34 };

/** Width for `seq` and time of the records up to this one, so that hours of a long trace are not cut off. */
export function gutterFor(seq: number, t: number): number {
  const number = Math.max(stampWidths.number, textWidth(String(seq), noteFont));
  return Math.max(minGutter, Math.ceil(stampWidths.around + number + textWidth(clockText(t), noteFont)));
}

/** A narrower view does not show the matching arrows of the diagrams. */
const minWidthForPlaces = 1_000;
/** `wide` includes the matching arrows of the diagrams. */
const spareWidth = { narrow: 40, wide: 330 };
/** `least` fits `supervisor` in the font of the names. */
const columnWidth = { least: 84, wanted: 100, most: 190 };
const edge = 6;
const diagramNoteWidth = 170;

export interface Layout {
  /** Start of the first column; number and time of records are left of it. */
  readonly gutter: number;
  readonly columnWidth: number;
  readonly width: number;
  readonly hasNotes: boolean;
}

export function layoutOf(
  columns: number,
  viewport: number,
  minWidth: number = columnWidth.least,
  gutter: number = minGutter,
): Layout {
  const hasNotes = viewport >= minWidthForPlaces;
  const spareRightWidth = hasNotes ? spareWidth.wide : spareWidth.narrow;
  const availableWidth = (viewport - gutter - spareRightWidth) / Math.max(1, columns);
  const width = Math.floor(Math.min(columnWidth.most, Math.max(columnWidth.least, minWidth, availableWidth)));
  return {
    gutter,
    columnWidth: width,
    width: Math.max(viewport, gutter + width * columns + spareRightWidth),
    hasNotes,
  };
}

/** Cached, because measuring names would cost more than a step. */
const minWidthOf = new WeakMap<Columns, number>();

export function layoutFor(columns: Columns, viewport: number, gutter?: number): Layout {
  const { list } = columns;
  const minWidth = minWidthOf.get(columns) ?? columnWidthFor(list.map(({ family }) => family));
  minWidthOf.set(columns, minWidth);
  return layoutOf(list.length, viewport, minWidth, gutter);
}

export function widthFor(columns: number): number {
  return minGutter + columnWidth.wanted * columns + spareWidth.narrow;
}

/** The label moves left if it would exceed the right edge. */
export function labelAt(
  x: number,
  width: number,
  layout: Pick<Layout, 'gutter' | 'width' | 'hasNotes'>,
): { left: number; maxWidth: number } {
  const rightEdge = layout.width - edge - (layout.hasNotes ? diagramNoteWidth : 0);
  const labelLeft = Math.max(layout.gutter + edge, Math.min(x, rightEdge - width));
  return { left: labelLeft, maxWidth: rightEdge - labelLeft };
}

/** Distance of the label from an arrow to its own lifeline, on its right and on its left. */
const [labelDistanceRight, labelDistanceLeft] = [30, 8];

/** Like {@link labelAt}, for an arrow to its own lifeline, which its label must not cover. */
export function labelBesideLoop(
  x: number,
  width: number,
  layout: Pick<Layout, 'gutter' | 'width' | 'hasNotes'>,
): ReturnType<typeof labelAt> {
  const rightEdge = labelAt(x + labelDistanceRight, 0, layout);
  const availableBefore = x - labelDistanceLeft - layout.gutter - edge;
  if (width <= rightEdge.maxWidth || availableBefore <= rightEdge.maxWidth) return rightEdge;
  const maxWidth = Math.min(width, availableBefore);
  return { left: x - labelDistanceLeft - maxWidth, maxWidth };
}

/**
 * The first row in the page: 0 if all rows fit, otherwise a row with which the page includes the row of the current place.
 *
 * @param previousFirst the previous result, returned again if possible
 */
export function firstBodyRow(length: number, currentRow: number, previousFirst: number): number {
  const maxFirstRow = Math.max(0, length - maxBodyRows);
  const isOnCurrentPage = currentRow < 0 || (currentRow >= previousFirst && currentRow < previousFirst + maxBodyRows);
  return Math.max(0, Math.min(isOnCurrentPage ? previousFirst : currentRow - maxBodyRows / 2, maxFirstRow));
}

/** @param base the first row in the page */
export function rowTop(row: number, base: number): number {
  return (row - base) * rowHeight;
}

export function px(length: number): string {
  return `${length}px`;
}

export function xOf(column: number, { gutter, columnWidth: width }: Pick<Layout, 'gutter' | 'columnWidth'>): number {
  return Math.round(gutter + width * (column + 0.5));
}

/** A note on a lifeline, an arrow to its own lifeline, or one between two. */
export type DrawnEntry =
  | { readonly form: 'note' | 'self'; readonly x: number }
  | { readonly form: 'arrow'; readonly x: number; readonly length: number; readonly towards: 'left' | 'right' };

export function drawnEntryOf(
  entry: Entry,
  columns: Columns,
  layout: Pick<Layout, 'gutter' | 'columnWidth'>,
): DrawnEntry | undefined {
  const from = columns.columnIndexOf(entry.from);
  const to = columns.columnIndexOf(entry.to);
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

export function noteWidth(text: string): number {
  return Math.ceil(textWidth(text, noteFont) + 18);
}

/** The note is moved if it does not fit between the gutter and the right edge. */
export function noteCentreX(x: number, text: string, { gutter, width }: Pick<Layout, 'gutter' | 'width'>): number {
  const halfWidth = (textWidth(text, noteFont) + 18) / 2;
  return Math.max(gutter + edge + halfWidth, Math.min(x, width - edge - halfWidth));
}

export function noteLeftX(x: number, text: string, layout: Pick<Layout, 'gutter' | 'width'>): number {
  return Math.floor(noteCentreX(x, text, layout) - noteWidth(text) / 2);
}

/** False if the lifeline is merged into that of its owner. */
export function hasLifeline(columns: Columns, lifeline: Entry['from']): boolean {
  const column: Column | undefined = columns.list[columns.columnIndexOf(lifeline) ?? -1];
  return column?.lifelines.includes(lifeline) ?? false;
}
