/** Bars, marks and labels of a lane. The width in pixels bounds their number, however long the trace is. */
import { textWidth } from '../../../src/debugger/statechart/text-width.ts';
import { countProblemMarks } from '../recording/lane-at.ts';
import type { Lane, Mark, MarkKind, Phase } from '../recording/lanes.ts';
import { firstIndexAfter } from '../recording/sorted.ts';
import type { View } from './axis.ts';
import type { TimeAxis } from './time-axis.ts';

export interface Bar {
  readonly x: number;
  readonly width: number;
  readonly phase: Phase;
  /** Absent for merged bars. */
  readonly text?: string;
  /** Number of merged phases, which are too short to be drawn. */
  readonly mergedCount: number;
  readonly from: number;
  readonly to: number | undefined;
  readonly index: number;
}

export interface Cluster {
  readonly x: number;
  /** The worst kind of the merged marks. */
  readonly kind: MarkKind;
  readonly marks: readonly Mark[];
}

/** Marks at a smaller distance are merged. */
const markPixels = 7;
const kindsBySeverity: readonly MarkKind[] = [
  'request',
  'change',
  'push',
  'restart',
  'signal',
  'retry',
  'rejected',
  'failure',
  'departure',
];

/** Up to this number all lanes are shown, because lanes that appear and disappear are hard to follow. */
const alwaysShown = 8;

/** If there are many lanes, only those with content in the view are shown. */
export function lanesIn(lanes: readonly Lane[], { from, to }: View): readonly Lane[] {
  if (lanes.length <= alwaysShown) return lanes;
  return lanes.filter(({ spans, marks, counts }) => {
    const span = spans[firstIndexAfter(spans, (candidate) => candidate.to === undefined || candidate.to >= from)];
    const mark = marks[firstIndexAfter(marks, ({ t }) => t >= from)];
    return counts.length > 0 || (span !== undefined && span.from <= to) || (mark !== undefined && mark.t <= to);
  });
}

export const maxDrawnLanes = 300;

/** The chosen actor's lane has priority, then lanes with a bad mark in the view, then the first ones. The order stays the same. */
export function drawnLanes(
  lanes: readonly Lane[],
  { from, to }: View,
  chosenActor: string | undefined,
): { readonly lanes: readonly Lane[]; readonly leftOut: number } {
  if (lanes.length <= maxDrawnLanes) return { lanes, leftOut: 0 };
  const selectedLanes = new Set(lanes.filter(({ name }) => name === chosenActor));
  for (const isSelected of [(lane: Lane) => countProblemMarks(lane, from, to) > 0, () => true]) {
    for (let laneIndex = 0; laneIndex < lanes.length && selectedLanes.size < maxDrawnLanes; laneIndex++)
      if (isSelected(lanes[laneIndex]!)) selectedLanes.add(lanes[laneIndex]!);
  }
  return { lanes: lanes.filter((lane) => selectedLanes.has(lane)), leftOut: lanes.length - selectedLanes.size };
}

/** If there are more bars, wider ones are merged, too. */
export const maxBars = 400;

/** @param endTime time of the last record, at which open bars end */
export function barsOf(lane: Lane, axis: TimeAxis, endTime: number): Bar[] {
  const bars = barsFrom(lane, axis, endTime, 1);
  if (bars.length <= maxBars) return bars;
  return barsFrom(lane, axis, endTime, Math.ceil((2 * axis.width) / maxBars));
}

function barsFrom({ spans }: Lane, axis: TimeAxis, endTime: number, minBarWidth: number): Bar[] {
  const bars: Bar[] = [];
  /** Durations in the last bar, if it is merged. */
  let lengths = new Map<Phase, number>();
  for (let i = firstIndexAfter(spans, ({ to }) => (to ?? endTime) >= axis.from); i < spans.length; i++) {
    const { from, to, phase, index, text } = spans[i]!;
    if (from > axis.to) break;
    const x = axis.xOf(Math.max(from, axis.from));
    const rightX = axis.xOf(Math.min(to ?? endTime, axis.to));
    const length = (to ?? endTime) - from;
    const previousBar = bars.at(-1);
    // Merges a bar thinner than a pixel with a thin one before it, in the colour of the longest phase.
    if (
      previousBar !== undefined &&
      rightX - x < minBarWidth &&
      previousBar.width <= minBarWidth &&
      x - previousBar.x < minBarWidth
    ) {
      lengths.set(phase, (lengths.get(phase) ?? 0) + length);
      const width = minBarWidth === 1 ? previousBar.width : Math.min(minBarWidth, rightX - previousBar.x);
      const { text: _, ...mergedBar } = previousBar;
      bars[bars.length - 1] = {
        ...mergedBar,
        width,
        phase: phaseOfMaxLength(lengths),
        mergedCount: previousBar.mergedCount + 1,
        to,
      };
      continue;
    }
    bars.push({
      x,
      width: Math.max(rightX - x, 1),
      phase,
      mergedCount: 1,
      from,
      to,
      index,
      ...(text !== undefined && { text }),
    });
    lengths = new Map([[phase, length]]);
  }
  return bars;
}

function phaseOfMaxLength(lengths: ReadonlyMap<Phase, number>): Phase {
  return [...lengths].reduce((maximum, next) => (next[1] > maximum[1] ? next : maximum))[0];
}

export function clustersOf({ marks }: Lane, axis: TimeAxis): Cluster[] {
  const clusters: { x: number; kind: MarkKind; marks: Mark[] }[] = [];
  for (let i = firstIndexAfter(marks, ({ t }) => t >= axis.from); i < marks.length && marks[i]!.t <= axis.to; i++) {
    const mark = marks[i]!;
    const x = axis.xOf(mark.t);
    const lastCluster = clusters.at(-1);
    if (lastCluster === undefined || x - lastCluster.x >= markPixels) {
      clusters.push({ x, kind: mark.kind, marks: [mark] });
      continue;
    }
    lastCluster.marks.push(mark);
    if (kindsBySeverity.indexOf(mark.kind) > kindsBySeverity.indexOf(lastCluster.kind)) lastCluster.kind = mark.kind;
  }
  return clusters;
}

/** The points have the maximum count at each pixel where the count changes. */
export function stepsOf({ counts }: Lane, axis: TimeAxis): { readonly x: number; readonly n: number }[] {
  const first = firstIndexAfter(counts, ({ t }) => t > axis.from);
  const points = [{ x: 0, n: counts[first - 1]?.n ?? 0 }];
  for (let i = first; i < counts.length && counts[i]!.t <= axis.to; i++) {
    const x = Math.floor(axis.xOf(counts[i]!.t));
    const lastPoint = points.at(-1)!;
    if (lastPoint.x === x) lastPoint.n = Math.max(lastPoint.n, counts[i]!.n);
    else points.push({ x, n: counts[i]!.n });
  }
  return points;
}

export function clusterTitle({ marks }: Cluster, timeText: (t: number) => string): string {
  const lines = marks.slice(0, 8).map(({ t, title }) => `${timeText(t)}  ${title}`);
  return marks.length > 8 ? [...lines, `… and ${marks.length - 8} more: zoom in`].join('\n') : lines.join('\n');
}

/** Shortens `Decided: hot restart of epoch-1: configuration changed` step by step to `hot restart`. */
function shortenedTitles(title: string): string[] {
  const shortTitle = title.replace(/^\w+: /, '');
  return [title, shortTitle, shortTitle.split(': ')[0]!, shortTitle.split(/: | of /)[0]!];
}

export interface MarkLabel {
  readonly x: number;
  readonly text: string;
}

export const labelFont = { size: 10.5 };
const markOffset = 10;

/** Labels fit between two marks without covering a bar. */
export function labelsOf(clusters: readonly Cluster[], bars: readonly Bar[], width: number): MarkLabel[] {
  return clusters.flatMap(({ x, kind, marks }, i) => {
    const from = x + markOffset;
    const to = Math.min(width, (clusters[i + 1]?.x ?? Number.POSITIVE_INFINITY) - markOffset);
    const moreMarksText = marks.length > 1 ? ` +${marks.length - 1}` : '';
    const { title } = marks.find((mark) => mark.kind === kind)!;
    const fittingTitle = shortenedTitles(title)
      .map((titleText) => titleText + moreMarksText)
      .find((titleText) => {
        const end = from + textWidth(titleText, labelFont);
        return end <= to && !bars.some((bar) => bar.x < end && bar.x + bar.width > from);
      });
    return fittingTitle === undefined ? [] : [{ x: from, text: fittingTitle }];
  });
}
