import { Cluster_DnsLookupFamily } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { ProxyIpFamily } from '../../model/proxy/proxy-shape.ts';

export const lookupFamily: Readonly<Record<ProxyIpFamily, Cluster_DnsLookupFamily>> = {
  v4: Cluster_DnsLookupFamily.V4_ONLY,
  v6: Cluster_DnsLookupFamily.V6_ONLY,
  dual: Cluster_DnsLookupFamily.ALL,
};
