import type { Statechart } from '../../runtime/trace/statechart.ts';
import { layoutStatechart } from './layout.ts';
import { renderStatechart } from './svg.ts';

/** Keyed by definition, because a layout takes up to a second and most traces have the same machines. */
const svgByKey = new Map<string, Promise<string>>();
/** Limits the memory for traces of many versions. */
const maxDrawn = 64;

/** Returns the same text for the same definition. */
export function chartOf(chart: Statechart): Promise<string> {
  const key = JSON.stringify(chart);
  const cachedSvg = svgByKey.get(key);
  if (cachedSvg !== undefined) return cachedSvg;
  const svg = layoutStatechart(chart).then((layout) => renderStatechart(chart, layout));
  // A failed layout is retried.
  svg.catch(() => svgByKey.delete(key));
  if (svgByKey.size >= maxDrawn) svgByKey.delete(svgByKey.keys().next().value!);
  svgByKey.set(key, svg);
  return svg;
}
