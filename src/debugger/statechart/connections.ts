import type { Statechart } from '../../runtime/trace/statechart.ts';
import type { ArrowLabel, ChartBox } from './chart-layout.ts';
import { lineWidth, type TextLine, textFont, transitionWords, wrap } from './chart-text.ts';
import { lineHeight } from './state-header.ts';

/** Transitions with the same source and target share an arrow. */
export interface ChartConnection {
  readonly source: number;
  readonly target: number;
  readonly labels: readonly ConnectionLabel[];
}

export interface ConnectionLabel {
  readonly transition: number;
  readonly lines: readonly TextLine[];
}

const maxLabelWidth = 170;
const labelMargin = 4;
const labelGap = 3;

export function connectionsOf(chart: Statechart): ChartConnection[] {
  const connections = new Map<string, ChartConnection & { labels: ConnectionLabel[] }>();
  chart.transitions.forEach((transition, number) => {
    const lines = wrap(transitionWords(chart, transition), maxLabelWidth, textFont);
    for (const target of transition.targets) {
      const { source } = transition;
      const key = `${source} ${target}`;
      const connection = connections.get(key) ?? { source, target, labels: [] };
      connection.labels.push({ transition: number, lines });
      connections.set(key, connection);
    }
  });
  return [...connections.values()];
}

export function labelSize({ labels }: ChartConnection): { width: number; height: number } {
  const widths = labels.flatMap(({ lines }) => lines.map((line) => lineWidth(line, textFont)));
  const heights = labels.map(({ lines }) => lines.length * lineHeight);
  return {
    width: Math.ceil(Math.max(...widths)) + 2 * labelMargin,
    height: heights.reduce((sum, height) => sum + height, 0) + labelGap * (labels.length - 1),
  };
}

export function labelBoxes({ labels }: ChartConnection, labelArea: ChartBox): ArrowLabel[] {
  let y = labelArea.y;
  return labels.map(({ transition, lines }) => {
    const height = lines.length * lineHeight;
    const label = { transition, lines, x: labelArea.x, y: Math.round(y * 10) / 10, width: labelArea.width, height };
    y += height + labelGap;
    return label;
  });
}

/** Whether the target precedes the source in the definition. Other arrows lead down. */
export function leadsBack(chart: Statechart, { source, target }: ChartConnection): boolean {
  // Nested states have no order.
  const isNested = ancestorsOf(chart, source).includes(target) || ancestorsOf(chart, target).includes(source);
  return target < source && !isNested;
}

export function ancestorsOf(chart: Statechart, state: number): number[] {
  const { parent } = chart.states[state]!;
  return parent === undefined ? [] : [parent, ...ancestorsOf(chart, parent)];
}
