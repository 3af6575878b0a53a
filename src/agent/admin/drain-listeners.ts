/** The drain effect of an epoch (spec/agent.md §4.4, spec/envoy-hot-restart.md §4 "Graceful stop"). */
import { fromPromise } from 'xstate';
import type { DrainListenersOrder } from '../../../machines/agent/envoy/epoch.machine.ts';
import type { AdminConnector } from './admin-client.ts';

export interface DrainEnvironment {
  readonly adminAt: AdminConnector;
  readonly role: 'sidecar' | 'router';
}

/**
 * Who stops asks every client to leave with its answer first, then stops accepting, gradually. A sidecar goes on accepting
 * what its own workload sends: that workload may still be finishing.
 *
 * Who is replaced closes all of its listeners first: as long as they are open the kernel gives it a share of the new
 * connections.
 */
export function drainListeners({ adminAt, role }: DrainEnvironment) {
  return fromPromise<void, DrainListenersOrder>(async ({ input }) => {
    const admin = adminAt(input.adminPort);
    const gracefully = role === 'sidecar' ? '/drain_listeners?inboundonly&graceful' : '/drain_listeners?graceful';
    const orders = input.replaced ? ['/drain_listeners', '/healthcheck/fail'] : ['/healthcheck/fail', gracefully];
    for (const order of orders) await admin.post(order);
  });
}
