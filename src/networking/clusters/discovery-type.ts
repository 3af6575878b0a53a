import {
  Cluster_DiscoveryType,
  Cluster_LbPolicy,
  type ClusterSchema,
} from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { Features } from '../../model/mesh/features.ts';
import { isHeadless } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { Service } from '../../model/services/service.ts';
import { adsConfigSource } from '../messages/config-source-message.ts';
import { lookupFamily } from '../messages/dns-family.ts';
import type { Init } from '../messages/init.ts';
import { duration } from '../messages/protobuf-duration.ts';
import type { ClusterShape } from '../traffic/shape-keys.ts';
import type { EffectivePolicy } from '../traffic/traffic-policy.ts';

type ClusterInit = Init<typeof ClusterSchema>;

export type ClusterDiscovery = 'EDS' | 'STRICT_DNS' | 'LOGICAL_DNS' | 'ORIGINAL_DST' | 'DYNAMIC_DNS';

/** Returns `undefined` for an alias without a cluster. */
export function discoveryOf(
  service: Service,
  policy: EffectivePolicy,
  shape: ClusterShape,
  { features }: Pick<PushContext, 'features'>,
): ClusterDiscovery | undefined {
  switch (service.resolution) {
    case 'Alias':
      return undefined;
    case 'DynamicDNS':
      return 'DYNAMIC_DNS';
    case 'DNSLB':
      return usesPassthrough(policy, shape) ? 'ORIGINAL_DST' : 'STRICT_DNS';
    case 'DNSRoundRobinLB':
      return usesPassthrough(policy, shape) ? 'ORIGINAL_DST' : 'LOGICAL_DNS';
    case 'Passthrough':
      return choosesEndpoint(service, shape, features) ? 'EDS' : 'ORIGINAL_DST';
    case 'ClientSideLB':
      return policy.loadBalancer?.simple === 'PASSTHROUGH' ? 'ORIGINAL_DST' : 'EDS';
  }
}

function usesPassthrough({ loadBalancer }: EffectivePolicy, { type, interceptionMode }: ClusterShape): boolean {
  return loadBalancer?.simple === 'PASSTHROUGH' && type === 'sidecar' && interceptionMode !== 'NONE';
}

/**
 * Gateways always choose an endpoint, because they have no original destination. Sidecars choose a pod of a headless service if traffic is not
 * redirected or the feature is enabled.
 */
function choosesEndpoint(service: Service, shape: ClusterShape, { endpointsForHeadless }: Features): boolean {
  if (shape.type === 'router') return true;
  return isHeadless(service) && (endpointsForHeadless || shape.interceptionMode === 'NONE');
}

/** Envoy requests the endpoints on its ADS stream. */
export function edsFields(clusterName: string): ClusterInit {
  return {
    clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.EDS },
    edsClusterConfig: { edsConfig: adsConfigSource, serviceName: clusterName },
  };
}

export const originalDestinationFields: ClusterInit = {
  clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.ORIGINAL_DST },
  lbPolicy: Cluster_LbPolicy.CLUSTER_PROVIDED,
};

/** @param port replaces the port of the original destination */
export function originalDestination(port?: number): ClusterInit {
  if (port === undefined) return originalDestinationFields;
  return {
    ...originalDestinationFields,
    lbConfig: { case: 'originalDstLbConfig', value: { upstreamPortOverride: port } },
  };
}

export function dnsFields(
  type: 'STRICT_DNS' | 'LOGICAL_DNS',
  loadAssignment: NonNullable<ClusterInit['loadAssignment']>,
  shape: ClusterShape,
  push: PushContext,
): ClusterInit {
  return {
    clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType[type] },
    loadAssignment,
    dnsRefreshRate: duration(push.mesh.dnsRefreshRateMs),
    respectDnsTtl: true,
    dnsLookupFamily: lookupFamily[shape.ipFamily],
  };
}
