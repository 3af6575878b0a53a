/**
 * Configures the dynamic forward proxy for hosts without a service: ServiceEntries of resolution DYNAMIC_DNS, and outbound traffic policy
 * ALLOW_ANY_DYNAMIC_DNS. Filters and cluster share a DNS cache (Envoy docs, "HTTP dynamic forward proxy", "SNI dynamic forward proxy").
 */
import { Cluster_LbPolicy, type ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { ClusterConfigSchema } from '../../gen/envoy/extensions/clusters/dynamic_forward_proxy/v3/cluster_pb.ts';
import type { DnsCacheConfigSchema } from '../../gen/envoy/extensions/common/dynamic_forward_proxy/v3/dns_cache_pb.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { Service } from '../../model/services/service.ts';
import { pack } from './any.ts';
import { lookupFamily } from './dns-family.ts';
import type { Init } from './init.ts';
import { duration } from './protobuf-duration.ts';

type IpFamilyShape = Pick<ProxyShape, 'ipFamily'>;

/** The name contains the settings, because Envoy never removes a DNS cache and rejects different settings for one name. */
export function dnsCache({ ipFamily }: IpFamilyShape, mesh: MeshConfig): Init<typeof DnsCacheConfigSchema> {
  return {
    name: `dynamic-dns-${ipFamily}-${mesh.dnsRefreshRateMs}ms`,
    dnsLookupFamily: lookupFamily[ipFamily],
    dnsRefreshRate: duration(mesh.dnsRefreshRateMs),
  };
}

export function dynamicDnsFields(shape: IpFamilyShape, mesh: MeshConfig): Init<typeof ClusterSchema> {
  return {
    lbPolicy: Cluster_LbPolicy.CLUSTER_PROVIDED,
    clusterDiscoveryType: {
      case: 'clusterType',
      value: {
        name: 'envoy.clusters.dynamic_forward_proxy',
        typedConfig: pack(ClusterConfigSchema, {
          clusterImplementationSpecifier: { case: 'dnsCacheConfig', value: dnsCache(shape, mesh) },
          // DestinationRules configure certificate verification.
          allowInsecureClusterOptions: true,
        }),
      },
    },
  };
}

const listsWithDynamicDns = new WeakMap<readonly Service[], boolean>();

export function resolvesDynamically(shape: ProxyShape, push: PushContext): boolean {
  const { services, outboundTrafficPolicy } = push.sidecarScopeFor(shape);
  if (shape.type === 'sidecar' && outboundTrafficPolicy.mode === 'ALLOW_ANY_DYNAMIC_DNS') return true;
  let hasDynamicDns = listsWithDynamicDns.get(services);
  if (hasDynamicDns === undefined) {
    hasDynamicDns = services.some(({ resolution }) => resolution === 'DynamicDNS');
    listsWithDynamicDns.set(services, hasDynamicDns);
  }
  return hasDynamicDns;
}
