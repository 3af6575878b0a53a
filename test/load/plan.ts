/** A load run: its target, its clients, and its limits. Plain data, because it is sent to a process. */

/**
 * How a client behaves. None of them ever sends a request twice.
 *
 * - `ka`: keep-alive HTTP/1.1, the next request follows each response
 * - `slow`: keep-alive HTTP/1.1, idle between requests: the server may close its connection meantime
 * - `new`: a connection for each request
 * - `h2`: HTTP/2 sessions, each with several streams; a session that got a GOAWAY finishes, the next request opens another
 * - `stream`: keep-alive HTTP/1.1, chunked responses that take seconds, back to back
 * - `tcp`: a TCP connection for each line, to which the server responds with its own bytes
 */
export const clientKinds = ['ka', 'slow', 'new', 'h2', 'stream', 'tcp'] as const;
export type ClientKind = (typeof clientKinds)[number];

export interface ClientPlan {
  readonly kind: ClientKind;
  readonly target?: LoadTarget;
  /** Key of their counts in the report's `byName`. Default: their kind. */
  readonly name?: string;
  /** How many such clients: connections for HTTP/1.1, sessions for `h2`. */
  readonly count: number;
  /** Requests in flight on one `h2` session. Default 2. */
  readonly streams?: number;
  /** Idle time between a response and the next request. Default 1000 for `slow`, else 0. */
  readonly pauseMs?: number;
  /** Path and query. Default `/stream?seconds=3` for `stream`, else `/`. */
  readonly path?: string;
  /** A complete body ends with this; one that does not was cut. Default `end\n` for `stream`. */
  readonly bodyEndsWith?: string;
}

export interface LoadTarget {
  /** Where to connect to. */
  readonly host: string;
  readonly port: number;
  /** The `host` header or `:authority`; with TLS also the server name that is requested and verified. */
  readonly authority: string;
  /** Present for TLS: the only authority that is trusted, as a PEM file. */
  readonly caFile?: string;
}

export interface LoadPlan {
  readonly target: LoadTarget;
  readonly clients: readonly ClientPlan[];
  /** The run ends by itself after this. */
  readonly maxDurationMs: number;
  /** Requests over all clients after which the run ends by itself. Default: no such bound. */
  readonly maxRequests?: number;
  /** A request that takes longer has failed. Default 30 000. */
  readonly requestTimeoutMs?: number;
  /** How long requests in flight may take once the run is stopped. Default 15 000. */
  readonly drainTimeoutMs?: number;
}

/** A client plan without defaults. */
export type CompleteClientPlan = Required<Omit<ClientPlan, 'bodyEndsWith' | 'target'>> &
  Pick<ClientPlan, 'bodyEndsWith' | 'target'>;

/** Sets the defaults of a plan's kind. */
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
