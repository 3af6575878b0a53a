/** What part of a chart is seen, as arithmetic: scales and scroll positions, in pixels of the page unless said otherwise. */
import type { Box } from './chart-picture.ts';

export interface Size {
  readonly width: number;
  readonly height: number;
}

export const minScale = 0.1;
export const maxScale = 3;
/** Texts of 12 pixels are still read at this scale. */
const leastScale = 0.8;
/** At which they have 9 pixels, the least that is read. */
const nineScale = 0.75;

/** The scale at which all of the chart is seen. */
export function scaleToFit(chart: Size, viewport: Size): number {
  return clamp(Math.min(viewport.width / chart.width, viewport.height / chart.height), minScale, 1.25);
}

/** The scale that a chart is first shown at: as large as its width allows, and never too small to read. */
export function firstScale(chart: Size, viewport: Size): number {
  return clamp(viewport.width / chart.width, leastScale, 1);
}

/** All of the chart if it can be read so, else as small as it may be. */
export function readableScale(chart: Size, viewport: Size): number {
  return Math.max(scaleToFit(chart, viewport), nineScale);
}

/** The scale after a zoom by a factor. */
export function zoomed(scale: number, factor: number): number {
  return clamp(scale * factor, minScale, maxScale);
}

/** Where to scroll on one axis so that what is at `at` (from the viewport's edge) stays there while the scale changes. */
export function scrollToKeep(scroll: number, at: number, before: number, after: number): number {
  return ((scroll + at) * after) / before - at;
}

/**
 * Where to scroll on one axis so that a part of the chart (in its own pixels) is seen; undefined when it is already, with
 * a margin around it. What is larger than the viewport is shown from its beginning.
 */
export function scrollToShow(
  part: { readonly from: number; readonly length: number },
  scale: number,
  scroll: number,
  viewport: number,
): number | undefined {
  const from = part.from * scale;
  const length = part.length * scale;
  const margin = Math.min(24, Math.max(0, (viewport - length) / 2));
  if (from - margin >= scroll && from + length + margin <= scroll + viewport) return undefined;
  return Math.max(0, length > viewport ? from - 24 : from + length / 2 - viewport / 2);
}

/** The smallest box around others; undefined when there are none. */
export function around(boxes: readonly Box[]): Box | undefined {
  if (boxes.length === 0) return undefined;
  const x = Math.min(...boxes.map((box) => box.x));
  const y = Math.min(...boxes.map((box) => box.y));
  const right = Math.max(...boxes.map((box) => box.x + box.width));
  const bottom = Math.max(...boxes.map((box) => box.y + box.height));
  return { x, y, width: right - x, height: bottom - y };
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
