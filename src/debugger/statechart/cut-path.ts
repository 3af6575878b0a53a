/** Interrupts arrows where they would cross texts. */
import type { ChartBox, Point } from './chart-layout.ts';

/** The parts of a path of horizontal and vertical lines that are outside all boxes, in order. */
export function cutPath(points: readonly Point[], boxes: readonly ChartBox[]): Point[][] {
  const parts: Point[][] = [];
  let part: Point[] = [];
  const end = (): void => {
    if (part.length > 1) parts.push(part);
    part = [];
  };
  for (const [index, to] of points.entries()) {
    const from = points[index - 1];
    if (from === undefined) continue;
    for (const [start, stop] of outside(from, to, boxes)) {
      const begin = between(from, to, start);
      if (!isSame(part.at(-1), begin)) {
        end();
        part.push(begin);
      }
      part.push(between(from, to, stop));
    }
  }
  end();
  return parts;
}

/** As fractions of the length of the line. */
function outside(from: Point, to: Point, boxes: readonly ChartBox[]): [number, number][] {
  const hidden = boxes.flatMap((box) => inside(from, to, box)).sort(([start], [other]) => start - other);
  const shown: [number, number][] = [];
  let done = 0;
  for (const [start, stop] of hidden) {
    if (start > done) shown.push([done, start]);
    done = Math.max(done, stop);
  }
  if (done < 1) shown.push([done, 1]);
  return shown;
}

function inside(from: Point, to: Point, box: ChartBox): [number, number][] {
  const across = range(from.x, to.x, box.x, box.x + box.width);
  const down = range(from.y, to.y, box.y, box.y + box.height);
  const start = Math.max(0, across[0], down[0]);
  const stop = Math.min(1, across[1], down[1]);
  return start < stop ? [[start, stop]] : [];
}

/** The fractions of the line from one number to another between which it is within the limits. */
function range(from: number, to: number, low: number, high: number): [number, number] {
  if (from === to) return from > low && from < high ? [0, 1] : [1, 0];
  const shares = [(low - from) / (to - from), (high - from) / (to - from)] as const;
  return [Math.min(...shares), Math.max(...shares)];
}

function between(from: Point, to: Point, share: number): Point {
  const at = (start: number, stop: number): number => Math.round((start + (stop - start) * share) * 10) / 10;
  return { x: at(from.x, to.x), y: at(from.y, to.y) };
}

function isSame(point: Point | undefined, other: Point): boolean {
  return point !== undefined && point.x === other.x && point.y === other.y;
}
