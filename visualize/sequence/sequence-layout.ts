/** Where lifelines and arrows are, in pixels. */
import type { Column, Columns } from './sequence-lifelines.ts';
import type { Entry } from './sequence-rows.ts';

export const rowHeight = 26;
export const headHeight = 40;
/** Number and time of a record. */
export const gutter = 118;
/** A narrower view has no room for where the diagrams have a message. */
const narrow = 1_000;
/** What arrows of the last lifelines say goes beyond them. */
const spareWidth = { narrow: 150, wide: 330 };
const columnWidth = { least: 74, most: 190 };

export interface Layout {
  readonly columnWidth: number;
  readonly width: number;
  /** Whether there is room for where the diagrams have a message. */
  readonly hasNotes: boolean;
}

export function layoutOf(columns: number, viewport: number): Layout {
  const hasNotes = viewport >= narrow;
  const behind = hasNotes ? spareWidth.wide : spareWidth.narrow;
  const room = (viewport - gutter - behind) / Math.max(1, columns);
  const width = Math.floor(Math.min(columnWidth.most, Math.max(columnWidth.least, room)));
  return { columnWidth: width, width: Math.max(viewport, gutter + width * columns + behind), hasNotes };
}

/** A length for a style. */
export function px(length: number): string {
  return `${length}px`;
}

export function xOf(column: number, { columnWidth: width }: Pick<Layout, 'columnWidth'>): number {
  return Math.round(gutter + width * (column + 0.5));
}

/** How an entry is drawn: a note on a lifeline, an arrow back to its own lifeline, or one between two. */
export type Drawn =
  | { readonly form: 'note' | 'self'; readonly x: number }
  | { readonly form: 'arrow'; readonly x: number; readonly length: number; readonly towards: 'left' | 'right' };

export function drawn(entry: Entry, columns: Columns, layout: Pick<Layout, 'columnWidth'>): Drawn | undefined {
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

/** Where the middle of a note is: over its lifeline, unless it would reach into the gutter. */
export function noteMiddle(x: number, text: string): number {
  return Math.max(x, gutter + 6 + (text.length * 6.6 + 16) / 2);
}

/** Whether an actor's own lifeline is drawn, rather than the one of who it works for. */
export function hasLifeline(columns: Columns, lifeline: Entry['from']): boolean {
  const column: Column | undefined = columns.list[columns.of(lifeline) ?? -1];
  return column?.lifelines.includes(lifeline) ?? false;
}
