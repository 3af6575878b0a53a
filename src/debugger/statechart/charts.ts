import type { Statechart } from '../../runtime/trace/statechart.ts';
import { layoutStatechart } from './layout.ts';
import { renderStatechart } from './svg.ts';

/** By definition: a layout takes up to a second, and most traces have the same machines. */
const drawn = new Map<string, Promise<string>>();
/** More than the machines of both programs; the limit bounds the memory for traces of many versions. */
const maxDrawn = 64;

/** The chart of a machine as SVG; the same text for the same definition. */
export function chartOf(chart: Statechart): Promise<string> {
  const key = JSON.stringify(chart);
  const known = drawn.get(key);
  if (known !== undefined) return known;
  const svg = layoutStatechart(chart).then((layout) => renderStatechart(chart, layout));
  // A failed layout is retried.
  svg.catch(() => drawn.delete(key));
  if (drawn.size >= maxDrawn) drawn.delete(drawn.keys().next().value!);
  drawn.set(key, svg);
  return svg;
}
