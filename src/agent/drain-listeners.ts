/** The drain effect of an epoch (spec/agent.md §4.4, spec/envoy-hot-restart.md §4 "Graceful stop"). */
import { fromPromise } from 'xstate';
import type { AdminClient } from './admin-client.ts';

/**
 * First every answer asks its client to leave, then listeners stop accepting, gradually. A sidecar goes on accepting
 * what its own workload sends: that workload may still be finishing.
 */
export function drainListeners(admin: AdminClient, role: 'sidecar' | 'router') {
  return fromPromise<void, { epoch: number }>(async () => {
    await admin.post('/healthcheck/fail');
    await admin.post(role === 'sidecar' ? '/drain_listeners?inboundonly&graceful' : '/drain_listeners?graceful');
  });
}
