/** Process of a load run; see load-process.ts. */
import { messageOf } from '../../src/runtime/errors.ts';
import { type GeneratedLoad, generateLoad } from './generator.ts';
import type { LoadOrder, LoadResponse } from './load-process.ts';

let load: GeneratedLoad | undefined;

function respond(message: LoadResponse): void {
  process.send?.(message);
}

/** A long report is still being written when `send` returns, so the channel is closed afterwards. */
function respondAndDisconnect(message: LoadResponse): void {
  process.send?.(message, () => process.disconnect());
}

function start(plan: Extract<LoadOrder, { type: 'load.start' }>['plan']): void {
  try {
    load = generateLoad(plan);
  } catch (error) {
    respondAndDisconnect({ type: 'load.failed', reason: messageOf(error) });
    return;
  }
  respond({ type: 'load.started' });
  void load.finished.then((report) => respondAndDisconnect({ type: 'load.finished', report }));
}

process.on('message', (order: LoadOrder) => {
  switch (order.type) {
    case 'load.start':
      start(order.plan);
      break;
    case 'load.report':
      if (load !== undefined) respond({ type: 'load.reported', report: load.report() });
      break;
    case 'load.stop':
      void load?.stop();
      break;
  }
});
// The parent has exited or received everything.
process.on('disconnect', () => process.exit(0));
// Ctrl-C in a terminal reaches the complete process group; the parent decides when the load ends.
process.on('SIGINT', () => {});
