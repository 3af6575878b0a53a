/** Brief charts of a machine show names of states and arrows between them, with inactive states folded. */
import type { Statechart } from '../../runtime/trace/statechart.ts';
import { lineWidth, nameFont, splitWords, stateName, type TextLine, textFont, wrap } from './chart-text.ts';
import type { ChartConnection } from './connections.ts';
import { type FoldedStatechart, foldStatechart, longRow, siblingsOf } from './fold-statechart.ts';
import { layoutOnScreen } from './layout.ts';
import { lineHeight, margin, nameHeight, type StateHeader } from './state-header.ts';
import { renderStatechart } from './svg.ts';

export interface BriefChart {
  /** States whose children are shown, without the machine itself. */
  readonly open: readonly number[];
  /** The state in the centre of a long row. */
  readonly near?: number;
  /** SVG text without the style, which the complete chart contains. */
  readonly text: string;
}

/** A user's machine may have any number of states, and its charts take time to draw. */
const maxPictures = 40;
/** A chart of this size in pixels fills the window of a laptop (1440 × 900). */
export const briefScreen = { width: 1_410, height: 690 };
/** Names are wrapped early: most charts have less space at their sides than above and below. */
const maxNameWidth = 100;

/** There is one chart for each way to fold the machine, and one without folded states. */
export async function briefChartsOf(chart: Statechart): Promise<BriefChart[]> {
  const pictures: BriefChart[] = [];
  for (const { open, near } of foldingsOf(chart).slice(0, maxPictures)) {
    const text = await drawBrief(chart, foldStatechart(chart, new Set(open), near));
    pictures.push({ open, ...(near !== undefined && { near }), text });
  }
  return pictures;
}

type Folding = Pick<BriefChart, 'open' | 'near'>;

/** All foldings: with all states open, for each active state, and around each state of a long row. */
export function foldingsOf(chart: Statechart): Folding[] {
  const parents = [...new Set(chart.states.flatMap(({ parent }) => (parent === undefined ? [] : [parent])))];
  const isRow = (number: number): boolean => parents.includes(number) && number !== 0;
  const sortedParents = parents.filter(isRow).sort((a, b) => a - b);
  const foldings = new Map<string, Folding>();
  const add = (openStates: readonly number[], nearRow?: number): void => {
    const sortedStates = [...openStates].sort((a, b) => a - b);
    foldings.set(`${sortedStates} ${nearRow}`, { open: sortedStates, ...(nearRow !== undefined && { near: nearRow }) });
  };
  add(sortedParents);
  for (const stateSet of openStatesOf(chart, 0)) add(stateSet);
  for (const [number] of chart.states.entries()) {
    if (number !== 0 && siblingsOf(chart, number).length > longRow) {
      for (const stateSet of openStatesOf(chart, 0).filter((openStates) =>
        isRowOpen(openStates, chart.states[number]!.parent!),
      )) {
        if (!isRow(number) || stateSet.includes(number)) add(stateSet, number);
      }
    }
  }
  return [...foldings.values()];
}

function isRowOpen(openStates: readonly number[], row: number): boolean {
  return row === 0 || openStates.includes(row);
}

/** Parallel regions result in all combinations. */
function openStatesOf(chart: Statechart, number: number): number[][] {
  const children = chart.states.flatMap(({ parent }, child) => (parent === number ? [child] : []));
  if (children.length === 0) return [[]];
  const ownNumber = number === 0 ? [] : [number];
  const openStateLists = children.map((child) => openStatesOf(chart, child));
  if (chart.states[number]!.type !== 'parallel')
    return distinctStateSets(openStateLists.flat().map((stateSet) => [...ownNumber, ...stateSet]));
  let combinations: number[][] = [ownNumber];
  for (const region of openStateLists) {
    combinations = distinctStateSets(
      combinations.flatMap((openStates) => region.map((stateSet) => [...openStates, ...stateSet])),
    ).slice(0, maxPictures);
  }
  return combinations;
}

function distinctStateSets(openStateLists: readonly number[][]): number[][] {
  return [...new Map(openStateLists.map((stateSet) => [stateSet.join(' '), stateSet])).values()];
}

async function drawBrief(wholeChart: Statechart, foldedChart: FoldedStatechart): Promise<string> {
  const { chart, numbers, leftOut } = foldedChart;
  const headers = chart.states.map((_, stateIndex) => briefHeader(foldedChart, stateIndex));
  const layout = await layoutOnScreen(chart, headers, briefConnections(chart), briefScreen);
  const isFolded = (stateIndex: number): boolean => leftOut[stateIndex]! > 0;
  return renderStatechart(chart, layout, { numbers, isFolded, entireChart: wholeChart });
}

/** The header contains the number of hidden inner states. */
function briefHeader({ chart, numbers, leftOut }: FoldedStatechart, stateIndex: number): StateHeader {
  const name = wrap(splitWords('name', stateName(chart, chart.states[stateIndex]!)), maxNameWidth, nameFont);
  const bottom = margin + name.length * nameHeight;
  const count = numbers[stateIndex] === undefined ? 0 : leftOut[stateIndex]!;
  // A single text, so that the visible text of a partly hidden box is a part of its name.
  const lines: TextLine[] =
    count === 0 ? [] : [[{ text: `▸ ${count} ${count === 1 ? 'state' : 'states'}`, role: 'keyword' }]];
  const widths = [...name.map((line) => lineWidth(line, nameFont)), ...lines.map((line) => lineWidth(line, textFont))];
  return {
    name,
    rows: lines.length === 0 ? [] : [{ lines, y: bottom }],
    width: Math.ceil(Math.max(...widths)) + 2 * margin,
    height: bottom + lines.length * lineHeight + margin,
  };
}

function briefConnections(chart: Statechart): ChartConnection[] {
  const connections = new Map<string, ChartConnection & { labels: ChartConnection['labels'][number][] }>();
  chart.transitions.forEach(({ source, targets }, transition) => {
    for (const target of targets) {
      const key = `${source} ${target}`;
      const connection = connections.get(key) ?? { source, target, labels: [] };
      connection.labels.push({ transition, lines: [] });
      connections.set(key, connection);
    }
  });
  return [...connections.values()];
}
