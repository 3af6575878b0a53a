/** Routes each Redis command separately (PILOT_ENABLE_REDIS_FILTER). A terminal filter. */
import { RedisProxySchema } from '../../../gen/envoy/extensions/filters/network/redis_proxy/v3/redis_proxy_pb.ts';
import type { ConnectionContext } from '../../inputs/connection-context.ts';
import { typedExtension } from '../../messages/any.ts';
import { duration } from '../../messages/protobuf-duration.ts';
import type { ConnectionUse, NetworkFilterContributor } from './contributor.ts';

const operationTimeoutMs = 5_000;

/** Weighted destinations are forwarded as TCP, because weights apply to connections. */
export function speaksRedis({ push }: ConnectionContext, use: ConnectionUse): boolean {
  return use.kind === 'tcp' && use.protocol === 'Redis' && use.destinations.length === 1 && push.features.redisFilter;
}

export const redisProxy: NetworkFilterContributor = (context, use) => {
  if (use.kind !== 'tcp' || !speaksRedis(context, use)) return [];
  const { cluster } = use.destinations[0]!;
  return [
    typedExtension('envoy.filters.network.redis_proxy', RedisProxySchema, {
      statPrefix: cluster,
      latencyInMicros: true,
      settings: { opTimeout: duration(operationTimeoutMs) },
      prefixRoutes: { catchAllRoute: { cluster } },
    }),
  ];
};
