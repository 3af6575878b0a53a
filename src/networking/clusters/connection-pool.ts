import { create } from '@bufbuild/protobuf';
import { type CircuitBreakers, CircuitBreakersSchema } from '../../gen/envoy/config/cluster/v3/circuit_breaker_pb.ts';
import {
  type UpstreamConnectionOptions,
  UpstreamConnectionOptionsSchema,
} from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type {
  ConnectionPoolSettings,
  RetryBudget,
  TcpKeepalive,
} from '../../model/kinds/destinations/traffic-policy.ts';

/** Without a rule, connections are unlimited; Envoy's default would be 1024. */
const unlimitedCount = 4294967295;

export function circuitBreakers(pool: ConnectionPoolSettings | undefined, budget?: RetryBudget): CircuitBreakers {
  const threshold = {
    maxConnections: pool?.tcp?.maxConnections || unlimitedCount,
    maxPendingRequests: pool?.http?.http1MaxPendingRequests || unlimitedCount,
    maxRequests: pool?.http?.http2MaxRequests || unlimitedCount,
    maxRetries: pool?.http?.maxRetries || unlimitedCount,
    retryBudget: budget && {
      budgetPercent: { value: budget.percent ?? 20 },
      minRetryConcurrency: budget.minRetryConcurrency ?? 3,
    },
  };
  return create(CircuitBreakersSchema, { thresholds: [threshold] });
}

export function connectionOptions(
  pool: ConnectionPoolSettings | undefined,
  meshKeepalive: TcpKeepalive | undefined,
): UpstreamConnectionOptions | undefined {
  const keepalive = pool?.tcp?.tcpKeepalive ?? meshKeepalive;
  if (keepalive === undefined) return undefined;
  return create(UpstreamConnectionOptionsSchema, {
    tcpKeepalive: {
      keepaliveProbes: keepalive.probes,
      keepaliveTime: roundedSeconds(keepalive.timeMs),
      keepaliveInterval: roundedSeconds(keepalive.intervalMs),
    },
  });
}

/** Socket options are in seconds, and 0 would disable them. */
function roundedSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.max(1, Math.round(ms / 1000));
}
