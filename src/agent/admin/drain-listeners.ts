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
    const gracefulPath = role === 'sidecar' ? '/drain_listeners?inboundonly&graceful' : '/drain_listeners?graceful';
    const paths = input.replaced ? ['/drain_listeners', '/healthcheck/fail'] : ['/healthcheck/fail', gracefulPath];
    for (const path of paths) await admin.post(path);
  });
}
