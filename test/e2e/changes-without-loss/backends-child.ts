/** Entry point of the applications' process; see backends-process.ts. */
import { AnyBackend } from './any-backend.ts';
import type { BackendsOrder, BackendsReport } from './backends-process.ts';

const backends = new Map<string, AnyBackend>();

async function execute(order: BackendsOrder): Promise<BackendsReport> {
  switch (order.type) {
    case 'backends.start':
      for (const name of order.names) backends.set(name, await AnyBackend.start(name, order.certificate));
      return { type: 'backends.started', ports: [...backends.values()].map(({ port }) => port) };
    case 'backends.count':
      return { type: 'backends.counted', requests: backends.get(order.name)?.requests.get(order.host) ?? 0 };
  }
}

process.on('message', (order: BackendsOrder) => {
  void execute(order).then((report) => process.send?.(report));
});
process.on('disconnect', () => process.exit(0));
// A terminal's Ctrl-C reaches the complete process group; the parent decides when the applications exit.
process.on('SIGINT', () => {});
process.send?.({ type: 'backends.ready' } satisfies BackendsReport);
