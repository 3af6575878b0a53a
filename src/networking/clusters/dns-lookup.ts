import { create, toBinary, type UnknownField } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { DurationSchema } from '@bufbuild/protobuf/wkt';
import type { Cluster } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { TypedExtensionConfigSchema } from '../../gen/envoy/config/core/v3/extension_pb.ts';
import { CaresDnsResolverConfigSchema } from '../../gen/envoy/extensions/network/dns_resolver/cares/v3/cares_dns_resolver_pb.ts';
import { pack } from '../messages/any.ts';
import { duration } from '../messages/protobuf-duration.ts';

/**
 * Envoy's c-ares resolver. It changes its source port after this number of queries, because some firewalls and kernels drop responses to a port that
 * is used indefinitely (Envoy's documentation, CaresDnsResolverConfig `udp_max_queries`).
 */
export const dnsResolver = create(TypedExtensionConfigSchema, {
  name: 'envoy.network.dns_resolver.cares',
  typedConfig: pack(CaresDnsResolverConfigSchema, { udpMaxQueries: 100 }),
});

/** Field number of `Cluster.dns_jitter`, which the vendored Envoy API does not contain yet. */
const dnsJitterField = 58;

/**
 * A random delay prevents the proxies of a mesh from querying simultaneously. 0 disables the delay.
 *
 * @param cluster a cluster that resolves names; modified in place
 */
export function withDnsJitter(cluster: Cluster, jitterMs: number): Cluster {
  if (jitterMs <= 0) return cluster;
  const value = toBinary(DurationSchema, create(DurationSchema, duration(jitterMs)));
  const data = new BinaryWriter().bytes(value).finish();
  const field: UnknownField = { no: dnsJitterField, wireType: WireType.LengthDelimited, data };
  cluster.$unknown = [...(cluster.$unknown ?? []), field];
  return cluster;
}
