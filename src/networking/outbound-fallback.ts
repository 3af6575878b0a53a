/** Where a sidecar's traffic goes that no configuration describes (spec/discovery.md §8.4, §8.5). */
import type { OutboundTrafficPolicy } from '../model/kinds/sidecar.ts';
import { resolveDestination } from './destination.ts';
import { blackHoleCluster, passthroughCluster } from './names.ts';
import type { Reach } from './reach.ts';

/** The cluster for it: the one asked for, or nowhere. */
export function fallbackCluster(policy: OutboundTrafficPolicy, reach: Reach): string {
  if (policy.mode === 'REGISTRY_ONLY') return blackHoleCluster;
  return policy.egressProxy ? resolveDestination(policy.egressProxy, 0, reach).cluster : passthroughCluster;
}
