import { markupText } from '../../runtime/markup-text.ts';
import type { Statechart, StatechartState } from '../../runtime/trace/statechart.ts';
import type { ArrowLabel, ChartArrow, ChartBox, ChartLayout, InitialMarker, Point, StateBox } from './chart-layout.ts';
import { stateName, type TextLine, transitionTitle } from './chart-text.ts';
import { cutPath } from './cut-path.ts';
import { type HeaderRow, lineHeight, margin, nameHeight } from './state-header.ts';
import { svgStyle } from './svg-style.ts';

const cornerRadius = 6;
const headLength = 8;

export interface PartOf {
  readonly numbers: readonly (number | undefined)[];
  isFolded(state: number): boolean;
  readonly entireChart: Statechart;
}

/**
 * The page highlights parts by the selectors `g.state[data-state]`, `g.transition[data-transition]` and `g.internal[data-transition]`, with the
 * numbers of the definition.
 */
export function renderStatechart(chart: Statechart, layout: ChartLayout, partOf?: PartOf): string {
  const { width, height, states, arrows, markers } = layout;
  const headers = states.map(headerText);
  const label = `Statechart of ${chart.id}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" class="statechart" data-machine="${markupText(chart.id)}" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${markupText(label)}">`,
    // The page contains the complete chart, which has the style.
    ...(partOf === undefined ? [`<style>${svgStyle}</style>`] : []),
    `<rect class="paper" width="${width}" height="${height}"/>`,
    ...states.map((box, number) => renderState(chart, box, number, partOf)),
    ...markers.map(renderMarker),
    ...arrows.map((arrow) => renderArrow(partOf?.entireChart ?? chart, arrow, headers)),
    '</svg>\n',
  ].join('\n');
}

function renderState(chart: Statechart, box: StateBox, number: number, partOf?: PartOf): string {
  const state = chart.states[number]!;
  const { header, x, y } = box;
  return [
    `<g class="${markupText(stateClasses(chart, state))}${partOf?.isFolded(number) === true ? ' folded' : ''}"${numberAttribute(number, partOf)} data-path="${markupText(state.path)}">`,
    `<title>${markupText([stateName(chart, state), state.description].filter(Boolean).join('\n'))}</title>`,
    `<rect class="box" ${rect(box)} rx="${cornerRadius + 2}"/>`,
    ...(state.type === 'final' ? [`<rect class="inner" ${rect(insetBox(box, 3))} rx="${cornerRadius}"/>`] : []),
    ...header.name.map((line, index) => text(line, x + margin, y + margin + index * nameHeight + 13, 'name')),
    ...header.rows.map((row) => renderRow(chart, row, box)),
    '</g>',
  ].join('\n');
}

function numberAttribute(number: number, partOf: PartOf | undefined): string {
  const wholeNumber = partOf === undefined ? number : partOf.numbers[number];
  return wholeNumber === undefined ? '' : ` data-state="${wholeNumber}"`;
}

function stateClasses(chart: Statechart, { type, parent }: StatechartState): string {
  const isRegion = parent !== undefined && chart.states[parent]!.type === 'parallel';
  return ['state', type, ...(isRegion ? ['region'] : [])].join(' ');
}

function renderRow(chart: Statechart, { transition, lines, y }: HeaderRow, box: ChartBox): string {
  const texts = lines.map((line, index) => text(line, box.x + margin, box.y + y + index * lineHeight + 12));
  if (transition === undefined) return texts.join('\n');
  return [
    `<g class="internal ${markupText(chart.transitions[transition]!.kind)}" data-transition="${transition}">`,
    `<title>${markupText(transitionTitle(chart, transition))}</title>`,
    ...texts,
    '</g>',
  ].join('\n');
}

function renderMarker(marker: InitialMarker): string {
  const radius = marker.width / 2;
  const dot = `<circle class="dot" cx="${marker.x + radius}" cy="${marker.y + radius}" r="${radius}"/>`;
  return `<g class="initial">${dot}${arrowPaths(marker.points)}</g>`;
}

/** Draws the path once per transition, so that each can be highlighted. Only one of the paths is visible. */
function renderArrow(chart: Statechart, arrow: ChartArrow, headers: readonly ChartBox[]): string {
  const transitions = arrow.labels.map((label) => renderTransition(chart, arrow, label, headers));
  return ['<g class="way">', ...transitions, '</g>'].join('\n');
}

function renderTransition(
  chart: Statechart,
  arrow: ChartArrow,
  label: ArrowLabel,
  headers: readonly ChartBox[],
): string {
  const { kind } = chart.transitions[label.transition]!;
  const centre = label.x + label.width / 2;
  return [
    `<g class="transition ${markupText(kind)}" data-transition="${label.transition}">`,
    `<title>${markupText(transitionTitle(chart, label.transition))}</title>`,
    arrowPaths(arrow.points, [arrow.labelArea, ...headers]),
    ...(kind === 'timer' ? [`<rect class="countdown" ${rect(label)} rx="3"/>`] : []),
    ...label.lines.map((line, index) => text(line, centre, label.y + index * lineHeight + 12, 'label')),
    '</g>',
  ].join('\n');
}

function arrowPaths(points: readonly Point[], texts: readonly ChartBox[] = []): string {
  return `<path class="arrow" d="${cutPath(points, texts).map(pathData).join('')}"/><path class="head" d="${arrowHeadPath(points)}"/>`;
}

function pathData(points: readonly Point[]): string {
  return points.map(({ x, y }, index) => `${index === 0 ? 'M' : 'L'}${x} ${y}`).join('');
}

function arrowHeadPath(points: readonly Point[]): string {
  const arrowTip = points.at(-1)!;
  const previousPoint = points.at(-2)!;
  const length = Math.hypot(arrowTip.x - previousPoint.x, arrowTip.y - previousPoint.y) || 1;
  const direction = { x: (arrowTip.x - previousPoint.x) / length, y: (arrowTip.y - previousPoint.y) / length };
  const arrowPoint = (distanceFromTip: number, offset: number) =>
    `${arrowTip.x - direction.x * distanceFromTip - direction.y * offset} ${arrowTip.y - direction.y * distanceFromTip + direction.x * offset}`;
  return `M${arrowPoint(0, 0)}L${arrowPoint(headLength, 4)}L${arrowPoint(headLength, -4)}Z`;
}

function text(line: TextLine, x: number, y: number, kind?: 'name' | 'label'): string {
  const attributes = `x="${x}" y="${y}"${kind === undefined ? '' : ` class="${kind}"`}${kind === 'label' ? ' text-anchor="middle"' : ''}`;
  const spans = line.map(
    (part) => `<tspan class="${part.role === 'timer' ? 'timer-text' : part.role}">${markupText(part.text)}</tspan>`,
  );
  return `<text ${attributes}>${kind === 'name' ? markupText(line.map((part) => part.text).join(' ')) : spans.join(' ')}</text>`;
}

function headerText({ x, y, header }: StateBox): ChartBox {
  const halfWidth = margin - 3;
  return {
    x: x + halfWidth,
    y: y + halfWidth,
    width: header.width - 2 * halfWidth,
    height: header.height - 2 * halfWidth,
  };
}

function insetBox({ x, y, width, height }: ChartBox, inset: number): ChartBox {
  return { x: x + inset, y: y + inset, width: width - 2 * inset, height: height - 2 * inset };
}

function rect({ x, y, width, height }: ChartBox): string {
  return `x="${x}" y="${y}" width="${width}" height="${height}"`;
}
