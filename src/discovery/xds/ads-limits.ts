import type { ExchangeRules } from '../../../machines/discovery/xds/ads-exchange.ts';
import type { AddressPaceLimits } from './admission/address-pace.ts';
import type { UnidentifiedLimits } from './admission/unidentified-connections.ts';

export interface AdsLimits {
  /** If 0, only the load limits streams. Default 0. */
  readonly streamsPerSecond?: number;
  /** Default 4 MiB. */
  readonly maxRequestBytes?: number;
  /** Maximum per TCP connection with identified nodes. Default 100 000. */
  readonly maxConcurrentStreams?: number;
  /** Namespaces have fair shares. Default: as many as half of the heap can hold. */
  readonly maxServedStreams?: number;
  /** Subscribed names per stream. Default 200 000. */
  readonly maxNames?: number;
  /** Maximum per stream. Default 16 Mi. */
  readonly maxNameChars?: number;
  /** Maximum time that a response waits for earlier ones. Default 2 min. */
  readonly congestionMs?: number;
  /** Maximum time that a change waits for the previous ACK or NACK. Default 10 s. */
  readonly ackTimeoutMs?: number;
  /** Maximum time that listeners and routes wait for clusters. Default 5 s. */
  readonly makeBeforeBreakMs?: number;
  /** Delay from the ACK that no resource uses a cluster to its removal. Default 5 s. */
  readonly removalDelayMs?: number;
  readonly unidentified?: Partial<UnidentifiedLimits>;
  /** Limits for addresses with connections that fail before a node is identified. */
  readonly addressPace?: Partial<AddressPaceLimits>;
  readonly keepaliveTimeMs?: number;
  readonly keepaliveTimeoutMs?: number;
  /** Time after which a connection must reconnect; 0 means never. Default 0. */
  readonly maxConnectionAgeMs?: number;
  /** Grace period for streams of such a connection. Default 10 s. */
  readonly maxConnectionAgeGraceMs?: number;
}

export const defaultMaxNames = 200_000;
/** Proxyless clients need a listener, a route and a few clusters with endpoints for each target. */
export const maxGrpcNames = 10_000;
export const maxGrpcNameChars = 1024 * 1024;
/** PILOT_XDS_MAKE_BEFORE_BREAK_TIMEOUT. */
export const defaultMakeBeforeBreakMs = 5_000;
/** PILOT_XDS_CLUSTER_REMOVAL_DELAY. */
export const defaultRemovalDelayMs = 5_000;
/** Envoy's drain time if the ProxyConfig contains none. Agents set the same value. */
export const defaultDrainMs = 45_000;

export function streamLimits(limits: AdsLimits) {
  return {
    ackTimeoutMs: limits.ackTimeoutMs ?? 10_000,
    congestionMs: limits.congestionMs ?? 120_000,
    makeBeforeBreakMs: limits.makeBeforeBreakMs ?? defaultMakeBeforeBreakMs,
    removalDelayMs: limits.removalDelayMs ?? defaultRemovalDelayMs,
  };
}

export function nameLimits(limits: AdsLimits) {
  return {
    maxNames: limits.maxNames ?? defaultMaxNames,
    maxNameChars: limits.maxNameChars ?? 16 * 1024 * 1024,
  };
}

export function grpcRules(rules: ExchangeRules): ExchangeRules {
  return {
    ...rules,
    maxNames: Math.min(rules.maxNames, maxGrpcNames),
    maxNameChars: Math.min(rules.maxNameChars, maxGrpcNameChars),
    isGrpcProgram: true,
  };
}

/** Envoy's list of extensions takes a tenth of this, and a pod's annotations at most half. */
export const maxNodeBytes = 512 * 1024;
/** Maximum size in later requests of a stream. */
export const maxLaterNodeBytes = 4 * 1024;
/** Maximum length of `type~ip~pod.namespace~domain`, and of the cluster name. The longest Kubernetes names result in 600 characters. */
export const maxNodeIdLength = 1_024;

export function maxStreamsOf({ maxConcurrentStreams = 100_000 }: AdsLimits): number {
  return maxConcurrentStreams;
}

export function channelOptions(limits: AdsLimits): Record<string, number> {
  return {
    'grpc.max_receive_message_length': limits.maxRequestBytes ?? 4 * 1024 * 1024,
    'grpc.max_send_message_length': -1,
    'grpc.max_concurrent_streams': maxStreamsOf(limits),
    // Disables bookkeeping for each stream, which is not used.
    'grpc.enable_channelz': 0,
    'grpc.keepalive_time_ms': limits.keepaliveTimeMs ?? 30_000,
    'grpc.keepalive_timeout_ms': limits.keepaliveTimeoutMs ?? 10_000,
    'grpc.keepalive_permit_without_calls': 1,
    ...((limits.maxConnectionAgeMs ?? 0) > 0 && {
      'grpc.max_connection_age_ms': limits.maxConnectionAgeMs!,
      'grpc.max_connection_age_grace_ms': limits.maxConnectionAgeGraceMs ?? 10_000,
    }),
  };
}
