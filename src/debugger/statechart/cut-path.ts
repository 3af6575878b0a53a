/** Interrupts arrows where they would cross texts. */
import type { ChartBox, Point } from './chart-layout.ts';

/** Returns the parts of the path that are outside all boxes. */
export function cutPath(points: readonly Point[], boxes: readonly ChartBox[]): Point[][] {
  const segments: Point[][] = [];
  let segment: Point[] = [];
  const end = (): void => {
    if (segment.length > 1) segments.push(segment);
    segment = [];
  };
  for (const [index, to] of points.entries()) {
    const from = points[index - 1];
    if (from === undefined) continue;
    for (const [start, rangeEnd] of rangesOutside(from, to, boxes)) {
      const startPoint = pointBetween(from, to, start);
      if (!isSamePoint(segment.at(-1), startPoint)) {
        end();
        segment.push(startPoint);
      }
      segment.push(pointBetween(from, to, rangeEnd));
    }
  }
  end();
  return segments;
}

/** The ranges are fractions of the line. */
function rangesOutside(from: Point, to: Point, boxes: readonly ChartBox[]): [number, number][] {
  const hiddenRanges = boxes.flatMap((box) => insideRanges(from, to, box)).sort(([start], [other]) => start - other);
  const visibleRanges: [number, number][] = [];
  let doneLength = 0;
  for (const [start, rangeEnd] of hiddenRanges) {
    if (start > doneLength) visibleRanges.push([doneLength, start]);
    doneLength = Math.max(doneLength, rangeEnd);
  }
  if (doneLength < 1) visibleRanges.push([doneLength, 1]);
  return visibleRanges;
}

function insideRanges(from: Point, to: Point, box: ChartBox): [number, number][] {
  const horizontalRange = range(from.x, to.x, box.x, box.x + box.width);
  const verticalRange = range(from.y, to.y, box.y, box.y + box.height);
  const start = Math.max(0, horizontalRange[0], verticalRange[0]);
  const rangeEnd = Math.min(1, horizontalRange[1], verticalRange[1]);
  return start < rangeEnd ? [[start, rangeEnd]] : [];
}

function range(from: number, to: number, low: number, high: number): [number, number] {
  if (from === to) return from > low && from < high ? [0, 1] : [1, 0];
  const shares = [(low - from) / (to - from), (high - from) / (to - from)] as const;
  return [Math.min(...shares), Math.max(...shares)];
}

function pointBetween(from: Point, to: Point, share: number): Point {
  const interpolate = (start: number, rangeEnd: number): number =>
    Math.round((start + (rangeEnd - start) * share) * 10) / 10;
  return { x: interpolate(from.x, to.x), y: interpolate(from.y, to.y) };
}

function isSamePoint(point: Point | undefined, other: Point): boolean {
  return point !== undefined && point.x === other.x && point.y === other.y;
}
