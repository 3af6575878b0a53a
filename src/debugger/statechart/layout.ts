/** Lays out a statechart with ELK. The same definition always results in the same layout. */
import type { ELK, ElkExtendedEdge, ElkNode } from 'elkjs/lib/elk-api.js';
import type { Statechart } from '../../runtime/trace/statechart.ts';
import type { ChartArrow, ChartBox, ChartLayout, Point } from './chart-layout.ts';
import { type ChartConnection, connectionsOf, labelBoxes, leadsBack } from './connections.ts';
import { arrowId, type Direction, elkGraph, markerArrowId, markerId, stateId } from './elk-graph.ts';
import { type StateHeader, stateHeader } from './state-header.ts';

/** One pass is enough for most charts, two for nearly all: contents of a widened state may need a new layout. */
const maxPasses = 4;

const screen = { width: 1920, height: 1000 };
/** Below this scale a chart is not readable. */
const legibleScale = 0.5;

let engine: Promise<ELK> | undefined;

/** ELK is large, therefore it is loaded for the first layout. */
function loadEngine(): Promise<ELK> {
  engine ??= import('elkjs/lib/elk.bundled.js').then(({ default: elk }) => new elk.default());
  return engine;
}

export async function layoutStatechart(chart: Statechart): Promise<ChartLayout> {
  const headers = chart.states.map((_, number) => stateHeader(chart, number));
  const connections = connectionsOf(chart);
  return placeStates(chart, headers, connections, await layoutGraphOnScreen(chart, headers, connections));
}

/** Lays out the chart down or to the right, whichever is larger on a screen. */
export async function layoutOnScreen(
  chart: Statechart,
  headers: readonly StateHeader[],
  connections: readonly ChartConnection[],
  size: Size,
): Promise<ChartLayout> {
  const downwardLayout = await layoutGraph(chart, headers, connections, 'DOWN');
  const rightLayout = await layoutGraph(chart, headers, connections, 'RIGHT');
  return placeStates(
    chart,
    headers,
    connections,
    scaleOf(rightLayout, size) > scaleOf(downwardLayout, size) ? rightLayout : downwardLayout,
  );
}

function placeStates(
  chart: Statechart,
  headers: readonly StateHeader[],
  connections: readonly ChartConnection[],
  { graph, nodes }: GraphLayout,
): ChartLayout {
  const edges = new Map((graph.edges ?? []).map((edge) => [edge.id, edge]));
  return {
    width: Math.ceil(graph.width!),
    height: Math.ceil(graph.height!),
    states: headers.map((header, number) => ({ ...boxOf(nodes.get(stateId(number))!), header })),
    arrows: connections.map((connection, number) => arrowOf(chart, connection, edges.get(arrowId(number))!)),
    markers: chart.states.flatMap((_, parent) => {
      const edge = edges.get(markerArrowId(parent));
      return edge === undefined ? [] : [{ ...boxOf(nodes.get(markerId(parent))!), parent, points: pointsOf(edge) }];
    }),
  };
}

type Size = { readonly width: number; readonly height: number };

interface GraphLayout {
  readonly graph: ElkNode;
  readonly nodes: ReadonlyMap<string, ElkNode>;
}

async function layoutGraphOnScreen(
  chart: Statechart,
  headers: readonly StateHeader[],
  connections: readonly ChartConnection[],
): Promise<GraphLayout> {
  const downwardLayout = await layoutGraph(chart, headers, connections, 'DOWN');
  if (scaleOf(downwardLayout, screen) >= legibleScale) return downwardLayout;
  const rightLayout = await layoutGraph(chart, headers, connections, 'RIGHT');
  return scaleOf(rightLayout, screen) > scaleOf(downwardLayout, screen) ? rightLayout : downwardLayout;
}

function scaleOf({ graph: { width, height } }: GraphLayout, size: Size): number {
  return Math.min(size.width / width!, size.height / height!);
}

/** Repeats the layout while the header of a state is wider than its contents. */
async function layoutGraph(
  chart: Statechart,
  headers: readonly StateHeader[],
  connections: readonly ChartConnection[],
  direction: Direction,
): Promise<GraphLayout> {
  const elk = await loadEngine();
  let extraWidths = headers.map(() => 0);
  for (let pass = 1; ; pass++) {
    const graph = await elk.layout(elkGraph(chart, headers, extraWidths, connections, direction));
    const nodes = new Map(nodesBelow(graph).map((node) => [node.id, node]));
    const missingWidths = headers.map(({ width }, number) => Math.max(0, width - nodes.get(stateId(number))!.width!));
    if (pass === maxPasses || missingWidths.every((width) => width === 0)) return { graph, nodes };
    extraWidths = extraWidths.map((width, number) => width + missingWidths[number]!);
  }
}

function nodesBelow(node: ElkNode): ElkNode[] {
  return [node, ...(node.children ?? []).flatMap(nodesBelow)];
}

function arrowOf(chart: Statechart, connection: ChartConnection, edge: ElkExtendedEdge): ChartArrow {
  const { source, target } = connection;
  const points = pointsOf(edge);
  if (leadsBack(chart, connection)) points.reverse();
  const [label] = edge.labels ?? [];
  const labelArea = label === undefined ? { ...middleOf(points), width: 0, height: 0 } : boxOf(label);
  return { source, target, points, labelArea, labels: labelBoxes(connection, labelArea) };
}

function pointsOf({ sections }: ElkExtendedEdge): Point[] {
  const { startPoint, bendPoints = [], endPoint } = sections![0]!;
  return withCorners(
    [startPoint, ...bendPoints, endPoint].map(({ x, y }) => ({ x: roundToTenth(x), y: roundToTenth(y) })),
  );
}

function middleOf(points: readonly Point[]): Point {
  const segments = points.slice(1).map((to, i) => ({ from: points[i]!, to }));
  const length = ({ from, to }: (typeof segments)[number]): number => Math.abs(to.x - from.x) + Math.abs(to.y - from.y);
  const { from, to } = segments.reduce((current, line) => (length(line) > length(current) ? line : current));
  return { x: roundToTenth((from.x + to.x) / 2), y: roundToTenth((from.y + to.y) / 2) };
}

/** ELK's arrows from a state to its ancestor may have a diagonal line. */
function withCorners(points: readonly Point[]): Point[] {
  return points.flatMap((point, index) => {
    const previousPoint = points[index - 1];
    if (previousPoint === undefined || previousPoint.x === point.x || previousPoint.y === point.y) return [point];
    const y = roundToTenth((previousPoint.y + point.y) / 2);
    return [{ x: previousPoint.x, y }, { x: point.x, y }, point];
  });
}

function boxOf({ x, y, width, height }: { x?: number; y?: number; width?: number; height?: number }): ChartBox {
  return { x: roundToTenth(x!), y: roundToTenth(y!), width: roundToTenth(width!), height: roundToTenth(height!) };
}

/** A tenth of a pixel: more digits are invisible and enlarge the files. */
function roundToTenth(value: number): number {
  return Math.round(value * 10) / 10;
}
