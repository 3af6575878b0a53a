import type { ElkExtendedEdge, ElkNode, LayoutOptions } from 'elkjs/lib/elk-api.js';
import type { Statechart } from '../../runtime/trace/statechart.ts';
import { type ChartConnection, labelSize, leadsBack } from './connections.ts';
import type { StateHeader } from './state-header.ts';

const markerSize = 10;
const minLeafWidth = 60;
const border = 16;

export const stateId = (state: number): string => `state ${state}`;
export const markerId = (parent: number): string => `marker ${parent}`;
export const arrowId = (connection: number): string => `arrow ${connection}`;
export const markerArrowId = (parent: number): string => `marker arrow ${parent}`;

export type Direction = 'DOWN' | 'RIGHT';

/** ELK lays out each level of the hierarchy with its own options. */
const levelOptions: LayoutOptions = {
  'elk.algorithm': 'layered',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
  'elk.layered.thoroughness': '20',
  'elk.spacing.nodeNode': '24',
  'elk.spacing.edgeNode': '14',
  'elk.spacing.edgeEdge': '12',
  'elk.spacing.edgeLabel': '2',
  'elk.layered.spacing.nodeNodeBetweenLayers': '12',
  'elk.layered.spacing.edgeNodeBetweenLayers': '8',
  'elk.layered.spacing.edgeEdgeBetweenLayers': '8',
};

const rootOptions: LayoutOptions = {
  ...levelOptions,
  'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
  'elk.json.shapeCoords': 'ROOT',
  'elk.json.edgeCoords': 'ROOT',
  'elk.padding': padding(border),
  // 0 would use the time of day.
  'elk.randomSeed': '1',
};

/** @param extraWidths additional width of each state: ELK ignores the minimum width of a parent */
export function elkGraph(
  chart: Statechart,
  headers: readonly StateHeader[],
  extraWidths: readonly number[],
  connections: readonly ChartConnection[],
  direction: Direction,
): ElkNode {
  const arrows = connections.map((connection, number) => arrowEdge(chart, connection, number));
  return {
    id: 'chart',
    layoutOptions: { ...rootOptions, 'elk.direction': direction },
    children: [stateNode(chart, headers, extraWidths, 0, direction)],
    edges: [...markerEdges(chart), ...arrows],
  };
}

function stateNode(
  chart: Statechart,
  headers: readonly StateHeader[],
  extraWidths: readonly number[],
  number: number,
  direction: Direction,
): ElkNode {
  const { width, height } = headers[number]!;
  const { type, initial, parent } = chart.states[number]!;
  const alignment = direction === 'DOWN' ? 'TOP' : 'LEFT';
  const regionOptions =
    parent !== undefined && chart.states[parent]!.type === 'parallel' ? { 'elk.alignment': alignment } : {};
  const id = stateId(number);
  const children = chart.states.flatMap((state, child) =>
    state.parent === number ? [stateNode(chart, headers, extraWidths, child, direction)] : [],
  );
  if (children.length === 0) {
    return { id, width: Math.max(width, minLeafWidth), height, layoutOptions: regionOptions };
  }
  const marker = { id: markerId(number), width: markerSize, height: markerSize };
  return {
    id,
    children: type === 'compound' && initial !== undefined ? [marker, ...children] : children,
    layoutOptions: {
      ...levelOptions,
      'elk.direction': direction,
      ...regionOptions,
      'elk.padding': padding(height + border / 2, border + extraWidths[number]! / 2),
    },
  };
}

function markerEdges(chart: Statechart): ElkExtendedEdge[] {
  return chart.states.flatMap(({ type, initial }, number) =>
    type === 'compound' && initial !== undefined
      ? [{ id: markerArrowId(number), sources: [markerId(number)], targets: [stateId(initial)] }]
      : [],
  );
}

/**
 * Arrows that lead back are reversed for ELK, which would otherwise break cycles at arbitrary arrows. (Its options that keep the order of the model
 * fail on charts with arrows across levels.)
 */
function arrowEdge(chart: Statechart, connection: ChartConnection, number: number): ElkExtendedEdge {
  const { source, target } = connection;
  const [from, to] = leadsBack(chart, connection) ? [target, source] : [source, target];
  const edgeEnds = { id: arrowId(number), sources: [stateId(from)], targets: [stateId(to)] };
  if (connection.labels.every(({ lines }) => lines.length === 0)) return edgeEnds;
  const label = {
    // ELK omits labels without text.
    text: 'label',
    ...labelSize(connection),
    layoutOptions: { 'elk.edgeLabels.inline': 'true', 'elk.edgeLabels.placement': 'CENTER' },
  };
  return { ...edgeEnds, labels: [label] };
}

function padding(top: number, sidePadding: number = border): string {
  return `[top=${top},left=${sidePadding},bottom=${border},right=${sidePadding}]`;
}
