import { markupText } from '../../src/runtime/markup-text.ts';
import { clockText } from '../model/recording/words.ts';
import {
  drawnEntryOf,
  hasLifeline,
  layoutOf,
  minGutter,
  noteCentreX,
  rowHeight,
  xOf,
} from '../sequence/sequence-layout.ts';
import { type Columns, columnsWith, type Lifeline, livesWithin, titleOf } from '../sequence/sequence-lifelines.ts';
import { deviationLineText, deviationOfLine, type Entry, type SequenceRows } from '../sequence/sequence-rows.ts';
import { actorPrefixOf, labelOf, payloadOf } from '../sequence/sequence-text.ts';
import type { ExportedRange } from './exported-range.ts';
import type { StandaloneSvg } from './picture.ts';

export interface Palette {
  readonly paper: string;
  readonly ink: string;
  readonly muted: string;
  readonly line: string;
  readonly box: string;
  readonly active: string;
  readonly activeInk: string;
  readonly failureColor: string;
}

/** A longer picture is unreadable and exceeds browser limits. */
export const maxPictureRows = 1_500;

const maxPayload = 90;
const headHeight = 44;
const footHeight = 12;
const font = "system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif";

/** `end` is exclusive. */
export function rowsWithin(rows: SequenceRows, { first, last }: ExportedRange): { from: number; end: number } {
  return { from: rows.rowsBefore(first), end: rows.rowsBefore(last + 1) };
}

/** Columns without a row in the range are omitted. */
export function sequenceSvg(
  rows: SequenceRows,
  allColumns: Columns,
  range: ExportedRange,
  palette: Palette,
): StandaloneSvg {
  const { from, end } = rowsWithin(rows, range);
  const columns = columnsWith(allColumns, touchedLifelines(rows, from, end));
  const layout = layoutOf(columns.list.length, minGutter + columns.list.length * 150 + 330);
  const width = layout.width;
  const height = headHeight + Math.max(1, end - from) * rowHeight + footHeight;
  const body: string[] = [];
  columns.list.forEach((column, columnIndex) => {
    const x = xOf(columnIndex, layout);
    body.push(nameBox(titleOf(column, range.last), x, 9, layout.columnWidth - 10, palette));
    for (const lifeline of column.lifelines) {
      for (const { begin, end: lifeEnd } of livesWithin(lifeline, range.first, range.last)) {
        const top = begin < range.first ? headHeight - 9 : yOf(rows.rowsBefore(begin) - from) + rowHeight / 2;
        const bottom =
          lifeEnd > range.last ? height - footHeight : yOf(rows.rowsBefore(lifeEnd) - from) + rowHeight / 2;
        body.push(`<path d="M${x} ${top}V${bottom}" stroke="${palette.line}" opacity=".6"/>`);
      }
    }
  });
  for (let rowIndex = from; rowIndex < end; rowIndex++)
    body.push(...rowSvg(rows, rowIndex, yOf(rowIndex - from), { columns, layout, palette, width }));
  const text = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="${font}" font-size="12" fill="${palette.ink}">`,
    `<rect width="${width}" height="${height}" fill="${palette.paper}"/>`,
    ...body,
    '</svg>\n',
  ].join('\n');
  return { text, width, height };
}

function* touchedLifelines(rows: SequenceRows, from: number, end: number): Generator<Lifeline> {
  for (let rowIndex = from; rowIndex < end; rowIndex++) {
    const { entry } = rows.row(rowIndex);
    yield entry.from;
    yield entry.to;
  }
}

interface Drawing {
  columns: Columns;
  layout: ReturnType<typeof layoutOf>;
  palette: Palette;
  width: number;
}

function rowSvg(rows: SequenceRows, rowIndex: number, y: number, drawing: Drawing): string[] {
  const { entry, line } = rows.row(rowIndex);
  const { recording } = rows.index;
  const record = recording.recordAt(entry.index)!;
  const deviations = recording.deviationsAt(entry.index);
  const { palette, width } = drawing;
  const background =
    deviations.length > 0
      ? `<rect y="${y}" width="${width}" height="${rowHeight}" fill="${palette.failureColor}" opacity=".13"/>`
      : '';
  if (line > 0) {
    const lineDeviation = deviationOfLine(deviations, line);
    const deviationText =
      lineDeviation === undefined ? '' : deviationLineText(lineDeviation.deviation, lineDeviation.lineIndex);
    return [background, text(28, y + 17, deviationText, { fill: palette.failureColor })];
  }
  const deviationSign = deviations.length > 0 ? [text(4, y + 17, '⚠', { fill: palette.failureColor })] : [];
  return [
    background,
    ...deviationSign,
    text(48, y + 17, String(record.seq), { fill: palette.muted, 'text-anchor': 'end' }),
    text(56, y + 17, clockText(record.t), { fill: palette.muted }),
    ...arrowSvg(entry, labelOf(entry, record), payloadOf(record, maxPayload), y, deviations.length > 0, drawing),
  ];
}

function arrowSvg(
  entry: Entry,
  label: string,
  payload: string,
  y: number,
  isDeviation: boolean,
  drawing: Drawing,
): string[] {
  const { columns, layout, palette } = drawing;
  const drawnEntry = drawnEntryOf(entry, columns, layout);
  if (drawnEntry === undefined) return [];
  const note = actorPrefixOf(entry, columns) + label;
  const colour = isDeviation ? palette.failureColor : palette.line;
  if (drawnEntry.form === 'note') return [noteBox(note, noteCentreX(drawnEntry.x, note, layout), y + 4, palette)];
  const actorPrefix = actorPrefixOf(entry, columns);
  const isSpawned = entry.kind === 'spawn' && hasLifeline(columns, entry.to);
  const labelMarkup = `<tspan fill="${palette.muted}">${markupText(actorPrefix)}</tspan><tspan font-weight="600">${markupText(label)}</tspan> <tspan fill="${palette.muted}">${isSpawned ? '' : markupText(payload)}</tspan>`;
  // Keeps labels readable on top of lifelines.
  const outline = `stroke="${palette.paper}" stroke-width="4" stroke-linejoin="round" paint-order="stroke"`;
  const arrowEnds = [
    ...(isSpawned
      ? [
          nameBox(
            entry.toActor,
            xOf(columns.columnIndexOf(entry.to)!, layout),
            y + 2,
            8 * entry.toActor.length + 12,
            palette,
            22,
          ),
        ]
      : []),
    ...(isEndEntry(entry) && hasLifeline(columns, entry.from)
      ? [
          text(xOf(columns.columnIndexOf(entry.from)!, layout), y + 18, '✕', {
            'text-anchor': 'middle',
            fill: palette.line,
          }),
        ]
      : []),
  ];
  if (drawnEntry.form !== 'arrow') {
    if (isSpawned) return arrowEnds;
    return [
      `<path d="M${drawnEntry.x + 1} ${y + 7}h17q5 0 5 6t-5 6h-10" fill="none" stroke="${colour}" stroke-width="1.5"/>`,
      `<path d="M${drawnEntry.x + 1} ${y + 19}l8-3.5v7z" fill="${colour}"/>`,
      `<text x="${drawnEntry.x + 30}" y="${y + 17}" ${outline}>${labelMarkup}</text>`,
      ...arrowEnds,
    ];
  }
  const [tipX, backX] = drawnEntry.towards === 'right' ? [drawnEntry.x + drawnEntry.length, -8] : [drawnEntry.x, 8];
  return [
    `<path d="M${drawnEntry.x} ${y + 20}h${drawnEntry.length}" stroke="${colour}" stroke-width="1.5"/>`,
    `<path d="M${tipX} ${y + 20}l${backX} -4v8z" fill="${colour}"/>`,
    `<text x="${drawnEntry.x + 10}" y="${y + 14}" ${outline}>${labelMarkup}</text>`,
    ...arrowEnds,
  ];
}

function isEndEntry({ kind }: Entry): boolean {
  return kind === 'done' || kind === 'ended';
}

function nameBox(name: string, x: number, y: number, width: number, { box, line }: Palette, height = 26): string {
  return (
    `<rect x="${x - width / 2}" y="${y}" width="${width}" height="${height}" rx="5" fill="${box}" stroke="${line}"/>` +
    text(x, y + height / 2 + 4, name, { 'text-anchor': 'middle', 'font-weight': '600' })
  );
}

/** Texts are not measured here, so each letter counts as wide as a digit. */
function noteBox(name: string, x: number, y: number, { active, activeInk }: Palette): string {
  const width = 6.8 * name.length + 16;
  return (
    `<rect x="${x - width / 2}" y="${y}" width="${width}" height="18" rx="5" fill="${active}"/>` +
    text(x, y + 13, name, { 'text-anchor': 'middle', fill: activeInk })
  );
}

function text(x: number, y: number, content: string, attributes: Readonly<Record<string, string>>): string {
  const attributeText = Object.entries(attributes).map(([name, value]) => ` ${name}="${value}"`);
  return `<text x="${x}" y="${y}"${attributeText.join('')}>${markupText(content)}</text>`;
}

function yOf(row: number): number {
  return headHeight + row * rowHeight;
}
