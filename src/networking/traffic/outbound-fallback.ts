/** Where a sidecar's traffic goes that no configuration describes (spec/discovery.md §8.4, §8.5). */
import type { OutboundTrafficPolicy } from '../../model/kinds/workloads/sidecar.ts';
import { resolveDestination } from './destination.ts';
import type { Reach } from './reach.ts';
import { blackHoleCluster, dynamicDnsCluster, passthroughCluster } from './resource-names.ts';

/** The cluster for connections: the one asked for, or nowhere. */
export function fallbackCluster(policy: OutboundTrafficPolicy, reach: Reach): string {
  if (policy.mode === 'REGISTRY_ONLY') return blackHoleCluster;
  return policy.egressProxy ? resolveDestination(policy.egressProxy, 0, reach).cluster : passthroughCluster;
}

/** The cluster for requests: these name their host, so that it can be looked up where the policy says so. */
export function requestFallbackCluster(policy: OutboundTrafficPolicy, reach: Reach): string {
  return policy.mode === 'ALLOW_ANY_DYNAMIC_DNS' ? dynamicDnsCluster : fallbackCluster(policy, reach);
}
