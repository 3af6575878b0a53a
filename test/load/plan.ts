/** A load run: target, clients and limits. Plain data, because it is sent to another process. */

/**
 * Behaviour of a client. No kind sends a request twice.
 *
 * - `ka`: keep-alive HTTP/1.1; the next request follows each response
 * - `slow`: keep-alive HTTP/1.1, idle between requests, so that the server may close its connection
 * - `new`: a connection for each request
 * - `h2`: HTTP/2 sessions with several streams each; a session that received a GOAWAY completes its streams, and the next request opens another
 *   session
 * - `stream`: keep-alive HTTP/1.1, consecutive chunked responses that take seconds
 * - `tcp`: a TCP connection for each line, to which the server responds with any bytes
 */
export const clientKinds = ['ka', 'slow', 'new', 'h2', 'stream', 'tcp'] as const;
export type ClientKind = (typeof clientKinds)[number];

export interface ClientPlan {
  readonly kind: ClientKind;
  readonly target?: LoadTarget;
  /** Key of the counts in the report's `byName`. Default: the kind. */
  readonly name?: string;
  /** Number of connections for HTTP/1.1, of sessions for `h2`. */
  readonly count: number;
  /** Requests in flight on one `h2` session. Default 2. */
  readonly streams?: number;
  /** Idle time between a response and the next request. Default 1000 for `slow`, else 0. */
  readonly pauseMs?: number;
  /** Path and query. Default `/stream?seconds=3` for `stream`, else `/`. */
  readonly path?: string;
  /** Expected end of a complete body; a body without it was cut off. Default `end\n` for `stream`. */
  readonly bodyEndsWith?: string;
}

export interface LoadTarget {
  /** Address of the connection. */
  readonly host: string;
  readonly port: number;
  /** The `host` header or `:authority`; for TLS also the requested and verified server name. */
  readonly authority: string;
  /** PEM file of the only trusted CA. Present for TLS. */
  readonly caFile?: string;
}

export interface LoadPlan {
  readonly target: LoadTarget;
  readonly clients: readonly ClientPlan[];
  /** Maximum duration of the run. */
  readonly maxDurationMs: number;
  /** Maximum number of requests of all clients. Default: unlimited. */
  readonly maxRequests?: number;
  /** Time after which a request fails. Default 30 000. */
  readonly requestTimeoutMs?: number;
  /** Maximum time for requests in flight after the run is stopped. Default 15 000. */
  readonly drainTimeoutMs?: number;
}

export type CompleteClientPlan = Required<Omit<ClientPlan, 'bodyEndsWith' | 'target'>> &
  Pick<ClientPlan, 'bodyEndsWith' | 'target'>;

/** Sets the defaults of the plan's kind. */
export function completePlan(plan: ClientPlan): CompleteClientPlan {
  const streaming = plan.kind === 'stream';
  return {
    streams: 2,
    name: plan.kind,
    pauseMs: plan.kind === 'slow' ? 1_000 : 0,
    path: streaming ? '/stream?seconds=3' : '/',
    ...(streaming && { bodyEndsWith: 'end\n' }),
    ...plan,
  };
}
