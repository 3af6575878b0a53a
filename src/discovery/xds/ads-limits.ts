/** What bounds a client's share of the server. */
import type { ExchangeRules } from '../../../machines/discovery/xds/ads-exchange.ts';
import type { AddressPaceLimits } from './admission/address-pace.ts';
import type { StrangerLimits } from './admission/strangers.ts';

/** Times in milliseconds; each limit has the reference's default (spec/discovery.md §7.5). */
export interface AdsLimits {
  /** New streams a second; 0: the load is the only limit. Default 0. */
  readonly streamsPerSecond?: number;
  /** Largest request. Default 4 MiB. */
  readonly maxRequestBytes?: number;
  /** Streams of one TCP connection, once nodes have said by it who they are. Default 100 000. */
  readonly maxConcurrentStreams?: number;
  /** Streams that are served at the same time, with a fair share for each namespace. Default: what half of the heap has room for. */
  readonly maxServedStreams?: number;
  /** Names that a stream may be subscribed to, of all types together. Default 200 000. */
  readonly maxNames?: number;
  /** Characters in those names. Default 16 Mi. */
  readonly maxNameChars?: number;
  /** How long a response may wait until those before it have left. Default 2 min. */
  readonly congestionMs?: number;
  /** How long a change waits for a client's word on the response before it. Default 10 s. */
  readonly ackTimeoutMs?: number;
  /** How long listeners and routes wait for clusters that are new to the client. Default 5 s. */
  readonly makeBeforeBreakMs?: number;
  /** Since the client has acknowledged that nothing names a cluster, until it is removed. Default 5 s. */
  readonly removalDelayMs?: number;
  /** What connections by which nobody has said who is there are held to; each has a default. */
  readonly strangers?: Partial<StrangerLimits>;
  /** What an address may use up without anything coming of it; each has a default. */
  readonly addressPace?: Partial<AddressPaceLimits>;
  readonly keepaliveTimeMs?: number;
  readonly keepaliveTimeoutMs?: number;
  /** After this a connection is told to go elsewhere; 0 for never. Default 0. */
  readonly maxConnectionAgeMs?: number;
  /** What its streams then have. Default 10 s. */
  readonly maxConnectionAgeGraceMs?: number;
}

export const defaultMaxNames = 200_000;
/** Names that a stream of a gRPC program may be subscribed to: each target has a listener, a route and a few clusters with endpoints. */
export const maxGrpcNames = 10_000;
/** Characters in those names. */
export const maxGrpcNameChars = 1024 * 1024;
/** PILOT_XDS_MAKE_BEFORE_BREAK_TIMEOUT. */
export const defaultMakeBeforeBreakMs = 5_000;
/** PILOT_XDS_CLUSTER_REMOVAL_DELAY. */
export const defaultRemovalDelayMs = 5_000;
/** Envoy's drain time as agents set it, unless their ProxyConfig has another one. */
export const defaultDrainMs = 45_000;

/** What each stream is held to, in the words of its chart. */
export function streamLimits(limits: AdsLimits) {
  return {
    ackTimeoutMs: limits.ackTimeoutMs ?? 10_000,
    congestionMs: limits.congestionMs ?? 120_000,
    makeBeforeBreakMs: limits.makeBeforeBreakMs ?? defaultMakeBeforeBreakMs,
    removalDelayMs: limits.removalDelayMs ?? defaultRemovalDelayMs,
  };
}

/** What each stream may be subscribed to, in the words of its rules. */
export function nameLimits(limits: AdsLimits) {
  return {
    maxNames: limits.maxNames ?? defaultMaxNames,
    maxNameChars: limits.maxNameChars ?? 16 * 1024 * 1024,
  };
}

/** Narrows the limits of a stream for a gRPC program without a proxy. */
export function grpcRules(rules: ExchangeRules): ExchangeRules {
  return {
    ...rules,
    maxNames: Math.min(rules.maxNames, maxGrpcNames),
    maxNameChars: Math.min(rules.maxNameChars, maxGrpcNameChars),
    isGrpcProgram: true,
  };
}

/**
 * A node as a client sends it, in bytes: Envoy's list of its extensions takes a tenth of this, and all annotations that
 * Kubernetes allows a pod a half.
 */
export const maxNodeBytes = 512 * 1024;
/** What a client says of its node after that: a few words. */
export const maxLaterNodeBytes = 4 * 1024;
/** `type~ip~pod.namespace~domain`, in characters; of Kubernetes' names the longest make 600. Of its cluster's name as well. */
export const maxNodeIdLength = 1_024;

export function maxStreamsOf({ maxConcurrentStreams = 100_000 }: AdsLimits): number {
  return maxConcurrentStreams;
}

/** The limits in grpc-js' words. */
export function channelOptions(limits: AdsLimits): Record<string, number> {
  return {
    'grpc.max_receive_message_length': limits.maxRequestBytes ?? 4 * 1024 * 1024,
    'grpc.max_send_message_length': -1,
    'grpc.max_concurrent_streams': maxStreamsOf(limits),
    // Books about each stream that nobody reads.
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
