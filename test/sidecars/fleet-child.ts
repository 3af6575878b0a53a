/** Process of a fleet; see fleet-process.ts. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../src/runtime/errors.ts';
import { Fleet, type FleetReturn, nowMs } from './fleet.ts';
import type { FleetOrder, FleetResponse } from './fleet-process.ts';

let fleet: Fleet | undefined;
let returned: Promise<FleetReturn> | undefined;
let acknowledgement: Promise<number> | undefined;

const respond = (message: FleetResponse): void => void process.send?.(message);
const fail = (reason: string): void => respond({ type: 'failed', reason });

async function execute(order: FleetOrder): Promise<void> {
  switch (order.type) {
    case 'ready':
      respond({ type: 'ready' });
      break;
    case 'open': {
      fleet = new Fleet(order.plan, (reason) => fail(`a stream was lost: ${reason}`));
      const openedAtMs = nowMs();
      const first = fleet.first();
      const fullAtMs = await withTimeout(order.timeoutMs, fleet.open(), 'has not everything');
      respond({ type: 'opened', openedAtMs, firstAtMs: await first, fullAtMs, sizes: fleet.sizes() });
      break;
    }
    case 'mark':
      acknowledgement = withTimeout(
        order.timeoutMs,
        fleet!.awaitMark(order),
        `has not acknowledged ${order.kind} ${order.mark}`,
      );
      acknowledgement.catch(() => {});
      respond({ type: 'awaiting' });
      break;
    case 'marked':
      respond({ type: 'acknowledged', atMs: await acknowledgement! });
      break;
    case 'await-return':
      returned = withTimeout(order.timeoutMs, fleet!.awaitReturn(), 'have not come back');
      returned.catch(() => {});
      respond({ type: 'awaiting' });
      break;
    case 'return':
      respond({ type: 'returned', ...(await returned!) });
      break;
    case 'counts':
      respond({ type: 'counted', counts: fleet!.counts() });
      break;
    case 'save':
      for (const [kind, message] of fleet!.lastMessages) writeFileSync(join(order.folder, `${kind}.bin`), message);
      respond({ type: 'saved' });
      break;
  }
}

/** @throws Error with the number of missing sidecars */
async function withTimeout<Value>(timeoutMs: number, promise: Promise<Value>, description: string): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${fleet?.missing} ${description} after ${timeoutMs} ms`)), timeoutMs);
  });
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}

process.on('message', (order: FleetOrder) => {
  execute(order).catch((error: unknown) => fail(messageOf(error)));
});
// The parent has exited, or has received everything.
process.on('disconnect', () => process.exit(0));
// Ctrl-C in a terminal reaches the complete process group; the parent decides when the fleet ends.
process.on('SIGINT', () => {});
