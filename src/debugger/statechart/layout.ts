/**
 * Where everything of a statechart's picture lies, in pixels from its upper left corner. The same definition always gives
 * the same layout.
 */
import type { ELK, ElkExtendedEdge, ElkNode } from 'elkjs/lib/elk-api.js';
import type { Statechart } from '../../runtime/statechart.ts';
import type { Line } from './chart-text.ts';
import { type Connection, connectionsOf, labelBoxes, leadsBack } from './connections.ts';
import { arrowId, elkGraph, markerArrowId, markerId, stateId } from './elk-graph.ts';
import { type StateHeader, stateHeader } from './state-header.ts';

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Box extends Point {
  readonly width: number;
  readonly height: number;
}

export interface ChartLayout {
  readonly width: number;
  readonly height: number;
  /** By the numbers of the states. */
  readonly states: readonly StateBox[];
  readonly arrows: readonly Arrow[];
  readonly markers: readonly InitialMarker[];
}

export interface StateBox extends Box {
  readonly header: StateHeader;
}

/** From the border of one state to the border of another; vertical and horizontal lines. */
export interface Arrow {
  readonly source: number;
  readonly target: number;
  readonly points: readonly Point[];
  /** Where its labels are, together. */
  readonly room: Box;
  /** One for each transition that takes this way, from top to bottom. */
  readonly labels: readonly ArrowLabel[];
}

export interface ArrowLabel extends Box {
  readonly transition: number;
  readonly lines: readonly Line[];
}

/** The dot from which an arrow leads to the state that is entered first. */
export interface InitialMarker extends Box {
  /** Number of the state whose first one it tells. */
  readonly parent: number;
  readonly points: readonly Point[];
}

/** One is enough for most charts, two for nearly all: a state that is made wider may need its contents placed anew. */
const maxPasses = 4;

let engine: Promise<ELK> | undefined;

/** ELK is large: it is loaded when the first chart is laid out. */
function loadEngine(): Promise<ELK> {
  engine ??= import('elkjs/lib/elk.bundled.js').then(({ default: elk }) => new elk.default());
  return engine;
}

export async function layoutStatechart(chart: Statechart): Promise<ChartLayout> {
  const headers = chart.states.map((_, number) => stateHeader(chart, number));
  const connections = connectionsOf(chart);
  const { graph, nodes } = await layoutGraph(chart, headers, connections);
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

interface LaidOut {
  readonly graph: ElkNode;
  readonly nodes: ReadonlyMap<string, ElkNode>;
}

/** Again, when what is written at the top of a state is wider than what lies in it. */
async function layoutGraph(
  chart: Statechart,
  headers: readonly StateHeader[],
  connections: readonly Connection[],
): Promise<LaidOut> {
  const elk = await loadEngine();
  let wider = headers.map(() => 0);
  for (let pass = 1; ; pass++) {
    const graph = await elk.layout(elkGraph(chart, headers, wider, connections));
    const nodes = new Map(nodesBelow(graph).map((node) => [node.id, node]));
    const missing = headers.map(({ width }, number) => Math.max(0, width - nodes.get(stateId(number))!.width!));
    if (pass === maxPasses || missing.every((width) => width === 0)) return { graph, nodes };
    wider = wider.map((width, number) => width + missing[number]!);
  }
}

function nodesBelow(node: ElkNode): ElkNode[] {
  return [node, ...(node.children ?? []).flatMap(nodesBelow)];
}

function arrowOf(chart: Statechart, connection: Connection, edge: ElkExtendedEdge): Arrow {
  const { source, target } = connection;
  const points = pointsOf(edge);
  if (leadsBack(chart, connection)) points.reverse();
  const room = boxOf(edge.labels![0]!);
  return { source, target, points, room, labels: labelBoxes(connection, room) };
}

function pointsOf({ sections }: ElkExtendedEdge): Point[] {
  const { startPoint, bendPoints = [], endPoint } = sections![0]!;
  return withCorners([startPoint, ...bendPoints, endPoint].map(({ x, y }) => ({ x: round(x), y: round(y) })));
}

/** ELK's arrows from a state to one that it lies in may have a slanting line. */
function withCorners(points: readonly Point[]): Point[] {
  return points.flatMap((point, index) => {
    const before = points[index - 1];
    if (before === undefined || before.x === point.x || before.y === point.y) return [point];
    const y = round((before.y + point.y) / 2);
    return [{ x: before.x, y }, { x: point.x, y }, point];
  });
}

function boxOf({ x, y, width, height }: { x?: number; y?: number; width?: number; height?: number }): Box {
  return { x: round(x!), y: round(y!), width: round(width!), height: round(height!) };
}

/** A tenth of a pixel: what nobody sees would only make the files larger. */
function round(value: number): number {
  return Math.round(value * 10) / 10;
}
