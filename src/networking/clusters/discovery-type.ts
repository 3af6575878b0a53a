/** How the endpoints of an outbound cluster are found (spec/discovery.md §8.2, type and DNS rows). */

import {
  Cluster_DiscoveryType,
  Cluster_DnsLookupFamily,
  Cluster_LbPolicy,
  type ClusterSchema,
} from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { IpFamily } from '../../model/proxy-shape.ts';
import type { PushContext } from '../../model/push-context.ts';
import type { Service } from '../../model/service.ts';
import { adsConfigSource } from '../config-source.ts';
import { duration } from '../duration.ts';
import type { Init } from '../init.ts';
import type { ClusterShape } from '../proxy-shape.ts';
import type { EffectivePolicy } from '../traffic-policy.ts';

type ClusterInit = Init<typeof ClusterSchema>;

export type Discovery = 'EDS' | 'STRICT_DNS' | 'LOGICAL_DNS' | 'ORIGINAL_DST';

/**
 * Undefined when the service gets no cluster of its own: an alias stands for another service.
 *
 * A gateway has no original destination, so services without addresses are resolved by their known endpoints there.
 */
export function discoveryOf(service: Service, policy: EffectivePolicy, shape: ClusterShape): Discovery | undefined {
  switch (service.resolution) {
    case 'Alias':
    case 'DynamicDNS':
      return undefined;
    case 'DNSLB':
      return 'STRICT_DNS';
    case 'DNSRoundRobinLB':
      return 'LOGICAL_DNS';
    case 'Passthrough':
      return shape.type === 'router' ? 'EDS' : 'ORIGINAL_DST';
    case 'ClientSideLB':
      return policy.loadBalancer?.simple === 'PASSTHROUGH' ? 'ORIGINAL_DST' : 'EDS';
  }
}

/** The endpoints asked for on the stream that brought the cluster. */
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

const lookupFamily: Readonly<Record<IpFamily, Cluster_DnsLookupFamily>> = {
  v4: Cluster_DnsLookupFamily.V4_ONLY,
  v6: Cluster_DnsLookupFamily.V6_ONLY,
  dual: Cluster_DnsLookupFamily.ALL,
};

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
