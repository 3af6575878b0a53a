/** What bounds a client's share of the server. */

/** Times in milliseconds; each limit has the reference's default (spec/discovery.md §7.5). */
export interface AdsLimits {
  /** New streams a second; 0 for no limit. Default 0. */
  readonly streamsPerSecond?: number;
  /** Largest request. Default 4 MiB. */
  readonly maxRequestBytes?: number;
  /** Streams of one TCP connection. Default 100 000. */
  readonly maxConcurrentStreams?: number;
  /** How long a change waits for a client's word on the response before it. Default 10 s. */
  readonly ackPatienceMs?: number;
  readonly keepaliveTimeMs?: number;
  readonly keepaliveTimeoutMs?: number;
  /** After this a connection is told to go elsewhere; 0 for never. Default 0. */
  readonly maxConnectionAgeMs?: number;
  /** What its streams then have. Default 10 s. */
  readonly maxConnectionAgeGraceMs?: number;
}

/** The limits in grpc-js' words. */
export function channelOptions(limits: AdsLimits): Record<string, number> {
  return {
    'grpc.max_receive_message_length': limits.maxRequestBytes ?? 4 * 1024 * 1024,
    'grpc.max_send_message_length': -1,
    'grpc.max_concurrent_streams': limits.maxConcurrentStreams ?? 100_000,
    'grpc.keepalive_time_ms': limits.keepaliveTimeMs ?? 30_000,
    'grpc.keepalive_timeout_ms': limits.keepaliveTimeoutMs ?? 10_000,
    'grpc.keepalive_permit_without_calls': 1,
    ...((limits.maxConnectionAgeMs ?? 0) > 0 && {
      'grpc.max_connection_age_ms': limits.maxConnectionAgeMs!,
      'grpc.max_connection_age_grace_ms': limits.maxConnectionAgeGraceMs ?? 10_000,
    }),
  };
}
