/** Interrupts arrows where they would cross texts. */
import type { ChartBox, Point } from './chart-layout.ts';

/** Returns the parts of the path that are outside all boxes. */
export function cutPath(points: readonly Point[], boxes: readonly ChartBox[]): Point[][] {
  const segments: Point[][] = [];
  let segment: Point[] = [];
  const finishSegment = (): void => {
    if (segment.length > 1) segments.push(segment);
    segment = [];
  };
  for (const [index, to] of points.entries()) {
    const from = points[index - 1];
    if (from === undefined) continue;
    for (const [start, rangeEnd] of rangesOutside(from, to, boxes)) {
      const startPoint = pointBetween(from, to, start);
      if (!isSamePoint(segment.at(-1), startPoint)) {
        finishSegment();
        segment.push(startPoint);
      }
      segment.push(pointBetween(from, to, rangeEnd));
    }
  }
  finishSegment();
  return segments;
}

/** The ranges are fractions of the line. */
function rangesOutside(from: Point, to: Point, boxes: readonly ChartBox[]): [number, number][] {
  const hiddenRanges = boxes.flatMap((box) => insideRanges(from, to, box)).sort(([start], [other]) => start - other);
  const visibleRanges: [number, number][] = [];
  let coveredLength = 0;
  for (const [start, rangeEnd] of hiddenRanges) {
    if (start > coveredLength) visibleRanges.push([coveredLength, start]);
    coveredLength = Math.max(coveredLength, rangeEnd);
  }
  if (coveredLength < 1) visibleRanges.push([coveredLength, 1]);
  return visibleRanges;
}

function insideRanges(from: Point, to: Point, box: ChartBox): [number, number][] {
  const horizontalRange = rangeInside(from.x, to.x, box.x, box.x + box.width);
  const verticalRange = rangeInside(from.y, to.y, box.y, box.y + box.height);
  const start = Math.max(0, horizontalRange[0], verticalRange[0]);
  const rangeEnd = Math.min(1, horizontalRange[1], verticalRange[1]);
  return start < rangeEnd ? [[start, rangeEnd]] : [];
}

function rangeInside(from: number, to: number, low: number, high: number): [number, number] {
  if (from === to) return from > low && from < high ? [0, 1] : [1, 0];
  const fractions = [(low - from) / (to - from), (high - from) / (to - from)] as const;
  return [Math.min(...fractions), Math.max(...fractions)];
}

function pointBetween(from: Point, to: Point, fraction: number): Point {
  const interpolate = (start: number, rangeEnd: number): number =>
    Math.round((start + (rangeEnd - start) * fraction) * 10) / 10;
  return { x: interpolate(from.x, to.x), y: interpolate(from.y, to.y) };
}

function isSamePoint(point: Point | undefined, other: Point): boolean {
  return point !== undefined && point.x === other.x && point.y === other.y;
}
