/**
 * Brief pictures of a statechart, of which a person sees the whole at once: names of states and arrows between them, what is
 * not active folded. What arrows say is in their titles, and beside the picture.
 */
import type { Statechart } from '../../runtime/trace/statechart.ts';
import { type Line, lineWidth, nameFont, stateName, textFont, words, wrap } from './chart-text.ts';
import type { Connection } from './connections.ts';
import { type FoldedStatechart, foldStatechart, longRow, siblingsOf } from './fold-statechart.ts';
import { layoutOnScreen } from './layout.ts';
import { lineHeight, margin, nameHeight, type StateHeader } from './state-header.ts';
import { renderStatechart } from './svg.ts';

export interface BriefChart {
  /** Numbers of the states whose states are shown, sorted; the machine itself is not named. */
  readonly open: readonly number[];
  /** Of a long row: the state near which it is shown. */
  readonly near?: number;
  /** SVG text, without the style that the whole picture has. */
  readonly text: string;
}

/** A machine of somebody else's may have any number of states, and its pictures are waited for. */
const mostPictures = 40;
/** What a person sees of a chart that fills the window of a laptop (1440 × 900), in pixels. */
export const briefScreen = { width: 1_410, height: 690 };
/** Names are broken early: most pictures have less room at their sides than above and below. */
const maxNameWidth = 100;

/** All brief pictures of a machine: one for each way in which it may be folded, and one with all in it. */
export async function briefChartsOf(chart: Statechart): Promise<BriefChart[]> {
  const pictures: BriefChart[] = [];
  for (const { open, near } of foldingsOf(chart).slice(0, mostPictures)) {
    const text = await drawBrief(chart, foldStatechart(chart, new Set(open), near));
    pictures.push({ open, ...(near !== undefined && { near }), text });
  }
  return pictures;
}

type Folding = Pick<BriefChart, 'open' | 'near'>;

/** What is open when each of the states is the active one; all of it; and rows near each of their states. */
export function foldingsOf(chart: Statechart): Folding[] {
  const parents = [...new Set(chart.states.flatMap(({ parent }) => (parent === undefined ? [] : [parent])))];
  const isRow = (number: number): boolean => parents.includes(number) && number !== 0;
  const all = parents.filter(isRow).sort((a, b) => a - b);
  const found = new Map<string, Folding>();
  const add = (open: readonly number[], near?: number): void => {
    const sorted = [...open].sort((a, b) => a - b);
    found.set(`${sorted} ${near}`, { open: sorted, ...(near !== undefined && { near }) });
  };
  add(all);
  for (const way of waysOf(chart, 0)) add(way);
  for (const [number] of chart.states.entries()) {
    if (number !== 0 && siblingsOf(chart, number).length > longRow) {
      for (const way of waysOf(chart, 0).filter((open) => isIn(open, chart.states[number]!.parent!))) {
        if (!isRow(number) || way.includes(number)) add(way, number);
      }
    }
  }
  return [...found.values()];
}

function isIn(open: readonly number[], row: number): boolean {
  return row === 0 || open.includes(row);
}

/** Which states are open where one leaf is active, for each leaf; of regions each with each. */
function waysOf(chart: Statechart, number: number): number[][] {
  const children = chart.states.flatMap(({ parent }, child) => (parent === number ? [child] : []));
  if (children.length === 0) return [[]];
  const own = number === 0 ? [] : [number];
  const ways = children.map((child) => waysOf(chart, child));
  if (chart.states[number]!.type !== 'parallel') return distinct(ways.flat().map((way) => [...own, ...way]));
  let together: number[][] = [own];
  for (const region of ways) {
    together = distinct(together.flatMap((open) => region.map((way) => [...open, ...way]))).slice(0, mostPictures);
  }
  return together;
}

function distinct(ways: readonly number[][]): number[][] {
  return [...new Map(ways.map((way) => [way.join(' '), way])).values()];
}

async function drawBrief(whole: Statechart, folded: FoldedStatechart): Promise<string> {
  const { chart, numbers, leftOut } = folded;
  const headers = chart.states.map((_, place) => briefHeader(folded, place));
  const layout = await layoutOnScreen(chart, headers, briefConnections(chart), briefScreen);
  const isFolded = (place: number): boolean => leftOut[place]! > 0;
  return renderStatechart(chart, layout, { numbers, isFolded, whole });
}

/** The name, and how many states are in it that are not shown. */
function briefHeader({ chart, numbers, leftOut }: FoldedStatechart, place: number): StateHeader {
  const name = wrap(words('name', stateName(chart, chart.states[place]!)), maxNameWidth, nameFont);
  const below = margin + name.length * nameHeight;
  const count = numbers[place] === undefined ? 0 : leftOut[place]!;
  // In one piece: of a box that is half out of sight, what is read is a part of its name then.
  const lines: Line[] =
    count === 0 ? [] : [[{ text: `▸ ${count} ${count === 1 ? 'state' : 'states'}`, role: 'keyword' }]];
  const widths = [...name.map((line) => lineWidth(line, nameFont)), ...lines.map((line) => lineWidth(line, textFont))];
  return {
    name,
    rows: lines.length === 0 ? [] : [{ lines, y: below }],
    width: Math.ceil(Math.max(...widths)) + 2 * margin,
    height: below + lines.length * lineHeight + margin,
  };
}

/** An arrow for all transitions between two boxes; it says nothing. */
function briefConnections(chart: Statechart): Connection[] {
  const found = new Map<string, Connection & { labels: Connection['labels'][number][] }>();
  chart.transitions.forEach(({ source, targets }, transition) => {
    for (const target of targets) {
      const key = `${source} ${target}`;
      const connection = found.get(key) ?? { source, target, labels: [] };
      connection.labels.push({ transition, lines: [] });
      found.set(key, connection);
    }
  });
  return [...found.values()];
}
