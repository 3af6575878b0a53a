/** Runs in the thread of `drawing-thread.ts`. */
import { parentPort } from 'node:worker_threads';
import { messageOf } from '../../runtime/errors.ts';
import { chartOf } from '../statechart/charts.ts';
import { formatEventTable } from '../statechart/event-table.ts';
import { formatMermaid } from '../statechart/mermaid.ts';
import { drawMachine } from './draw-machine.ts';
import type { DrawingOrder, DrawingResult, Drawings } from './drawing-work.ts';

parentPort!.on('message', async (order: DrawingOrder) => {
  parentPort!.postMessage(await resultOf(order));
});

async function resultOf({ output, chart }: DrawingOrder): Promise<DrawingResult> {
  try {
    return { drawn: await makers[output](chart) };
  } catch (error) {
    return { failed: `layout failed: ${messageOf(error)}` };
  }
}

type DrawFunction<What extends keyof Drawings> = (
  chart: DrawingOrder['chart'],
) => Drawings[What] | Promise<Drawings[What]>;

const makers: { readonly [What in keyof Drawings]: DrawFunction<What> } = {
  pictures: drawMachine,
  svg: chartOf,
  mermaid: formatMermaid,
  table: formatEventTable,
};
