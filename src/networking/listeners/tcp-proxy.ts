/** The network filters that carry bytes (spec/discovery.md §8.4). */
import { create } from '@bufbuild/protobuf';
import { type Filter, FilterSchema } from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import { MongoProxySchema } from '../../gen/envoy/extensions/filters/network/mongo_proxy/v3/mongo_proxy_pb.ts';
import { TcpProxySchema } from '../../gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.ts';
import type { TunnelSettings } from '../../model/kinds/traffic-policy.ts';
import type { MeshConfig } from '../../model/mesh-config.ts';
import type { Protocol } from '../../model/protocol.ts';
import { bracketed } from '../address.ts';
import { typedExtension } from '../any.ts';
import { optionalDuration } from '../duration.ts';
import type { Init } from '../init.ts';
import { accessLogs } from './access-log.ts';

export interface WeightedCluster {
  readonly cluster: string;
  /** Ignored when it is the only one. */
  readonly weight: number;
}

export interface TcpProxyOptions {
  /** At least one. */
  readonly destinations: readonly WeightedCluster[];
  readonly mesh: MeshConfig;
  readonly protocol?: Protocol;
  readonly idleTimeoutMs?: number | undefined;
  readonly maxConnectionDurationMs?: number | undefined;
  readonly tunnel?: TunnelSettings | undefined;
  /** Sources that stick to an endpoint. */
  readonly hashSourceIp?: boolean;
}

/** The protocol's own filter, if there is one, and the proxy. */
export function tcpFilters(options: TcpProxyOptions): Filter[] {
  const statPrefix = options.destinations[0]!.cluster;
  const filters = [
    create(FilterSchema, typedExtension('envoy.filters.network.tcp_proxy', TcpProxySchema, proxy(options))),
  ];
  if (options.protocol === 'Mongo') {
    const mongo = typedExtension('envoy.filters.network.mongo_proxy', MongoProxySchema, { statPrefix });
    filters.unshift(create(FilterSchema, mongo));
  }
  return filters;
}

function proxy(options: TcpProxyOptions): Init<typeof TcpProxySchema> {
  const { destinations, mesh, tunnel } = options;
  return {
    statPrefix: destinations[0]!.cluster,
    clusterSpecifier:
      destinations.length === 1
        ? { case: 'cluster', value: destinations[0]!.cluster }
        : {
            case: 'weightedClusters',
            value: { clusters: destinations.map(({ cluster, weight }) => ({ name: cluster, weight })) },
          },
    idleTimeout: optionalDuration(options.idleTimeoutMs),
    maxDownstreamConnectionDuration: optionalDuration(options.maxConnectionDurationMs),
    accessLog: accessLogs(mesh),
    ...(options.hashSourceIp && { hashPolicy: [{ policySpecifier: { case: 'sourceIp', value: {} } }] }),
    ...(tunnel && {
      tunnelingConfig: {
        hostname: `${bracketed(tunnel.targetHost)}:${tunnel.targetPort}`,
        usePost: tunnel.protocol === 'POST',
      },
    }),
  };
}
