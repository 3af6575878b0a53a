/** Scales and scroll positions of the visible part of a chart, in CSS pixels. */
import type { DrawnStateBox } from './chart-picture.ts';

export interface Size {
  readonly width: number;
  readonly height: number;
}

export const minScale = 0.1;
export const maxScale = 3;
/** Smallest initial scale: 12-pixel text is 9.6 pixels high. */
const minReadableScale = 0.8;
/** Smallest readable scale: 12-pixel text is 9 pixels high. */
const ninePixelScale = 0.75;

export function scaleToFit(chart: Size, viewport: Size): number {
  return clamp(Math.min(viewport.width / chart.width, viewport.height / chart.height), minScale, 1.25);
}

export function initialScale(chart: Size, viewport: Size): number {
  return clamp(viewport.width / chart.width, minReadableScale, 1);
}

/** The scale that shows the complete chart if it is readable, else the smallest readable scale. */
export function readableScale(chart: Size, viewport: Size): number {
  return Math.max(scaleToFit(chart, viewport), ninePixelScale);
}

export function zoomScale(scale: number, factor: number): number {
  return clamp(scale * factor, minScale, maxScale);
}

/** Keeps the point at `viewOffset` (distance from the viewport's edge) in place while the scale changes. */
export function scrollToKeep(scroll: number, viewOffset: number, oldScale: number, newScale: number): number {
  return ((scroll + viewOffset) * newScale) / oldScale - viewOffset;
}

/** Scroll position on one axis that shows a part of the chart (in chart pixels); `undefined` if the part is visible already. */
export function scrollToShow(
  visiblePart: { readonly from: number; readonly length: number },
  scale: number,
  scroll: number,
  viewport: number,
): number | undefined {
  const from = visiblePart.from * scale;
  const length = visiblePart.length * scale;
  const margin = Math.min(24, Math.max(0, (viewport - length) / 2));
  if (from - margin >= scroll && from + length + margin <= scroll + viewport) return undefined;
  return Math.max(0, length > viewport ? from - 24 : from + length / 2 - viewport / 2);
}

export function boundingBoxOf(boxes: readonly DrawnStateBox[]): DrawnStateBox | undefined {
  if (boxes.length === 0) return undefined;
  const x = Math.min(...boxes.map((box) => box.x));
  const y = Math.min(...boxes.map((box) => box.y));
  const rightEdge = Math.max(...boxes.map((box) => box.x + box.width));
  const bottom = Math.max(...boxes.map((box) => box.y + box.height));
  return { x, y, width: rightEdge - x, height: bottom - y };
}

function clamp(value: number, lowerBound: number, upperBound: number): number {
  return Math.min(upperBound, Math.max(lowerBound, value));
}
