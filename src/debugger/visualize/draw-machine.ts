import type { Statechart } from '../../runtime/trace/statechart.ts';
import { briefChartsOf } from '../statechart/brief-charts.ts';
import { chartOf } from '../statechart/charts.ts';
import type { MachinePictures } from './known-charts.ts';

/** Rejects for a definition without states, or with names that do not exist. */
export async function drawMachine(chart: Statechart): Promise<MachinePictures> {
  const wholeChart = await chartOf(chart);
  return { whole: wholeChart, brief: await briefChartsOf(chart) };
}
