/** A thread that draws machines of traces, because a layout may take any time and must be cancellable. */
import { parentPort } from 'node:worker_threads';
import { messageOf } from '../../runtime/errors.ts';
import { chartOf } from '../statechart/charts.ts';
import { formatEventTable } from '../statechart/event-table.ts';
import { formatMermaid } from '../statechart/mermaid.ts';
import { drawMachine } from './draw-machine.ts';
import type { DrawingAnswer, DrawingOrder, Drawings } from './drawing-work.ts';

parentPort!.on('message', async (order: DrawingOrder) => {
  parentPort!.postMessage(await answerTo(order));
});

async function answerTo({ what, chart }: DrawingOrder): Promise<DrawingAnswer> {
  try {
    return { drawn: await makers[what](chart) };
  } catch (error) {
    return { failed: `layout failed: ${messageOf(error)}` };
  }
}

type Maker<What extends keyof Drawings> = (chart: DrawingOrder['chart']) => Drawings[What] | Promise<Drawings[What]>;

const makers: { readonly [What in keyof Drawings]: Maker<What> } = {
  pictures: drawMachine,
  svg: chartOf,
  mermaid: formatMermaid,
  table: formatEventTable,
};
