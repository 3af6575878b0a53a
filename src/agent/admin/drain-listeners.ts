import { fromPromise } from 'xstate';
import type { DrainListenersOrder } from '../../../machines/agent/envoy/epoch.machine.ts';
import type { AdminConnector } from './admin-client.ts';

export interface DrainEnvironment {
  readonly adminAt: AdminConnector;
  readonly role: 'sidecar' | 'router';
}

/**
 * A stopping Envoy first disconnects its clients through its responses, then gradually closes listeners. A sidecar keeps its outbound listeners.
 *
 * A replaced Envoy closes its listeners first, because the kernel distributes new connections among open listeners.
 */
export function drainListeners({ adminAt, role }: DrainEnvironment) {
  return fromPromise<void, DrainListenersOrder>(async ({ input }) => {
    const admin = adminAt(input.adminPort);
    const gracefully = role === 'sidecar' ? '/drain_listeners?inboundonly&graceful' : '/drain_listeners?graceful';
    const orders = input.replaced ? ['/drain_listeners', '/healthcheck/fail'] : ['/healthcheck/fail', gracefully];
    for (const order of orders) await admin.post(order);
  });
}
