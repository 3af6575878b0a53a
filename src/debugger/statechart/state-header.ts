import type { Statechart } from '../../runtime/trace/statechart.ts';
import {
  type ChartWord,
  entryWords,
  exitWords,
  internalWords,
  invokeWords,
  isIgnored,
  lineWidth,
  nameFont,
  splitWords,
  stateName,
  type TextLine,
  textFont,
  wrap,
} from './chart-text.ts';

export interface HeaderRow {
  readonly transition?: number;
  readonly lines: readonly TextLine[];
  /** Distance from the top of the box. */
  readonly y: number;
}

export interface StateHeader {
  readonly name: readonly TextLine[];
  readonly rows: readonly HeaderRow[];
  /** Includes margins. */
  readonly width: number;
  readonly height: number;
}

export const margin = 10;
export const nameHeight = 18;
export const lineHeight = 16;
const gapBelowName = 6;
const maxWidth = { leaf: 190, parent: 500 };

export function stateHeader(chart: Statechart, number: number): StateHeader {
  const state = chart.states[number]!;
  const isParent = chart.states.some(({ parent }) => parent === number);
  const width = isParent ? maxWidth.parent : maxWidth.leaf;
  const name = wrap(splitWords('name', stateName(chart, state)), width, nameFont);
  const bottom = margin + name.length * nameHeight;
  const rows: HeaderRow[] = [];
  let y = bottom + gapBelowName;
  for (const { text, transition } of rowTexts(chart, number)) {
    const lines = wrap(text, width, textFont);
    rows.push({ lines, y, ...(transition !== undefined && { transition }) });
    y += lines.length * lineHeight;
  }
  const widths = [
    ...name.map((line) => lineWidth(line, nameFont)),
    ...rows.flatMap(({ lines }) => lines.map((line) => lineWidth(line, textFont))),
  ];
  return {
    name,
    rows,
    width: Math.ceil(Math.max(...widths)) + 2 * margin,
    height: (rows.length > 0 ? y : bottom) + margin,
  };
}

function rowTexts(chart: Statechart, number: number): { text: readonly ChartWord[]; transition?: number }[] {
  const state = chart.states[number]!;
  const internal = chart.transitions.flatMap((transition, index) =>
    transition.source === number && transition.targets.length === 0 && !isIgnored(transition)
      ? [{ text: internalWords(chart, transition), transition: index }]
      : [],
  );
  const ownTexts = [...invokeWords(state), entryWords(state), exitWords(state)].filter((text) => text.length > 0);
  return [...ownTexts.map((text) => ({ text })), ...internal];
}
