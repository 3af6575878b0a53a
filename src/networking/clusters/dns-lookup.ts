/** How proxies ask DNS for the addresses of a cluster (spec/discovery.md §8.2, DNS row). */
import { create, toBinary, type UnknownField } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { DurationSchema } from '@bufbuild/protobuf/wkt';
import type { Cluster } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { TypedExtensionConfigSchema } from '../../gen/envoy/config/core/v3/extension_pb.ts';
import { CaresDnsResolverConfigSchema } from '../../gen/envoy/extensions/network/dns_resolver/cares/v3/cares_dns_resolver_pb.ts';
import { pack } from '../messages/any.ts';
import { duration } from '../messages/protobuf-duration.ts';

/**
 * Envoy's resolver, which takes another port after so many queries: some firewalls and kernels drop the answers to a port
 * that asks for ever (Envoy's documentation, CaresDnsResolverConfig `udp_max_queries`).
 */
export const dnsResolver = create(TypedExtensionConfigSchema, {
  name: 'envoy.network.dns_resolver.cares',
  typedConfig: pack(CaresDnsResolverConfigSchema, { udpMaxQueries: 100 }),
});

/** Envoy's `Cluster.dns_jitter`, which came to its API after the one that this program is made of. */
const dnsJitterField = 58;

/**
 * Has the proxies of a mesh ask at different times, each up to so much later than it could. 0: no later.
 *
 * @param cluster one that resolves names; it is changed.
 */
export function withDnsJitter(cluster: Cluster, jitterMs: number): Cluster {
  if (jitterMs <= 0) return cluster;
  const value = toBinary(DurationSchema, create(DurationSchema, duration(jitterMs)));
  const data = new BinaryWriter().bytes(value).finish();
  const field: UnknownField = { no: dnsJitterField, wireType: WireType.LengthDelimited, data };
  cluster.$unknown = [...(cluster.$unknown ?? []), field];
  return cluster;
}
