import type { OutboundTrafficPolicy } from '../../model/kinds/workloads/sidecar.ts';
import { resolveDestination } from './destination.ts';
import type { ProxyReach } from './reach.ts';
import { blackHoleCluster, dynamicDnsCluster, passthroughCluster } from './resource-names.ts';

export function fallbackCluster(policy: OutboundTrafficPolicy, reach: ProxyReach): string {
  if (policy.mode === 'REGISTRY_ONLY') return blackHoleCluster;
  return policy.egressProxy ? resolveDestination(policy.egressProxy, 0, reach).cluster : passthroughCluster;
}

export function requestFallbackCluster(policy: OutboundTrafficPolicy, reach: ProxyReach): string {
  return policy.mode === 'ALLOW_ANY_DYNAMIC_DNS' ? dynamicDnsCluster : fallbackCluster(policy, reach);
}
