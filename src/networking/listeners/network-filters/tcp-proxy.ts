import { TcpProxySchema } from '../../../gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.ts';
import type { ConnectionContext } from '../../inputs/connection-context.ts';
import { bracketIpv6 } from '../../messages/address.ts';
import { typedExtension } from '../../messages/any.ts';
import type { Init } from '../../messages/init.ts';
import { optionalDuration } from '../../messages/protobuf-duration.ts';
import { accessLogs, connectionReports } from '../observability/access-log.ts';
import type { NetworkFilterContributor, TcpProxyOptions } from './contributor.ts';
import { speaksRedis } from './redis-proxy.ts';

export const tcpProxy: NetworkFilterContributor = (context, use) =>
  use.kind === 'tcp' && !speaksRedis(context, use)
    ? [typedExtension('envoy.filters.network.tcp_proxy', TcpProxySchema, settings(context, use))]
    : [];

function settings(context: ConnectionContext, options: TcpProxyOptions): Init<typeof TcpProxySchema> {
  const { destinations, tunnel } = options;
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
    accessLog: accessLogs(context, 'connections'),
    ...connectionReports(context),
    ...(options.hashSourceIp && { hashPolicy: [{ policySpecifier: { case: 'sourceIp', value: {} } }] }),
    ...(tunnel && {
      tunnelingConfig: {
        hostname: `${bracketIpv6(tunnel.targetHost)}:${tunnel.targetPort}`,
        usePost: tunnel.protocol === 'POST',
      },
    }),
  };
}
