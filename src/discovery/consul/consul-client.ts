/** Uses HTTP/2 if the server offers it over TLS, otherwise HTTP/1.1 (Consul does not support HTTP/2 in plaintext). */
import type { IncomingHttpHeaders } from 'node:http';
import type { ConsulTransport } from '../../../machines/discovery/consul/watch-strategy.ts';
import { messageOf } from '../../runtime/errors.ts';
import { ApiError } from '../kubernetes/api-failure.ts';
import { ConnectionPool } from '../kubernetes/transport/connection-pool.ts';
import { ConsulError } from './consul-error.ts';
import type { ConsulAccess } from './consul-settings.ts';
import { Http1Connections, joinLines } from './http1-exchange.ts';
import { ReceivedBodies, type ReceivedBody } from './received-bodies.ts';

const connectTimeoutMs = 5_000;
/** A server without a leader does not respond. */
const plainTimeoutMs = 5_000;
/** Lost data or a revoked token is detected only when a blocking query ends. */
export const maxWaitMs = 30_000;
/** Consul can extend the wait by up to a sixteenth. */
const blockingTimeoutMs = maxWaitMs + maxWaitMs / 16 + 5_000;

export interface ConsulResponse {
  readonly body: unknown;
  readonly bytes: number;
  readonly index: number;
  /** Whether ACLs filtered the results. Also true if the default policy is `deny` and the request had no token. */
  readonly isRestricted: boolean;
}

export interface ConsulQuery {
  /** If set, the query blocks until the index exceeds this one, or for {@link maxWaitMs}. */
  readonly index?: number;
  readonly isConsistent?: boolean;
  readonly filter?: string;
  readonly signal: AbortSignal;
}

export class ConsulClient {
  readonly #access: ConsulAccess;
  readonly #datacenter: string;
  readonly #http1 = new Http1Connections();
  #http2: ConnectionPool | undefined;
  #transport: ConsulTransport | undefined;
  readonly #bodies = new ReceivedBodies();
  requests = 0;

  /** @param datacenter empty for the agent's datacenter */
  constructor(access: ConsulAccess, datacenter: string) {
    this.#access = access;
    this.#datacenter = datacenter;
    if (access.server.protocol === 'http:') this.#transport = 'HTTP/1.1';
  }

  /** Known after the first response. */
  get transport(): ConsulTransport {
    return this.#transport ?? 'HTTP/1.1';
  }

  get usedConnections(): number {
    return this.#http1.usedConnections;
  }

  /** @throws ConsulError */
  async get(path: string, query: ConsulQuery): Promise<ConsulResponse> {
    this.requests++;
    const body = this.#bodies.begin();
    try {
      const headers = {
        accept: 'application/json',
        'user-agent': 'pilot-discovery',
        ...(await this.#access.headers(query.signal)),
      };
      const receivedResponse = await this.#send({ path: this.#target(path, query), headers, query, body });
      return {
        body: parseJson(body.text()),
        bytes: body.bytes,
        index: indexOf(receivedResponse),
        isRestricted:
          receivedResponse['x-consul-results-filtered-by-acls'] === 'true' ||
          (!this.#access.hasToken && receivedResponse['x-consul-default-acl-policy'] === 'deny'),
      };
    } catch (error) {
      const failure = error instanceof ConsulError ? error : new ConsulError(failureOf(error));
      if (failure.failure.status === 403) this.#access.invalidateCredentials();
      throw failure;
    } finally {
      body.release();
    }
  }

  reconnect(): void {
    this.#access.invalidateCredentials();
    this.#http1.close();
    this.#http2?.closeAll();
    this.#http2 = undefined;
    if (this.#access.server.protocol === 'https:') this.#transport = undefined;
  }

  close(): void {
    this.#http1.close();
    this.#http2?.closeAll();
  }

  async #send(request: SentRequest): Promise<IncomingHttpHeaders> {
    const { path, headers, query, body } = request;
    const timeoutMs = query.index === undefined ? plainTimeoutMs : blockingTimeoutMs;
    if (this.#transport !== 'HTTP/1.1') {
      try {
        const receivedResponse = await this.#sendHttp2(request, timeoutMs);
        this.#transport = 'HTTP/2';
        return receivedResponse;
      } catch (error) {
        if (!isWithoutHttp2(error)) throw error;
        this.#transport = 'HTTP/1.1';
      }
    }
    const { server } = this.#access;
    return this.#http1.send({ server, path, headers, timeoutMs, body, signal: query.signal }, () =>
      this.#access.tls(query.signal),
    );
  }

  async #sendHttp2({ path, headers, query, body }: SentRequest, timeoutMs: number): Promise<IncomingHttpHeaders> {
    this.#http2 ??= new ConnectionPool(this.#access, connectTimeoutMs);
    let receivedHeaders: IncomingHttpHeaders = {};
    const reader = {
      isBodyIncomplete: false,
      hasTextErrors: true,
      headers: (responseHeaders: IncomingHttpHeaders): void => {
        receivedHeaders = responseHeaders;
      },
      data: (chunk: Buffer): void => body.push(Buffer.from(chunk)),
    };
    const limits = { responseMs: timeoutMs, totalMs: timeoutMs + connectTimeoutMs, idleMs: timeoutMs };
    const requestHeaders = () => ({ ...headers, ':method': 'GET', ':path': path });
    await this.#http2.send({ headers: requestHeaders }, reader, limits, query.signal);
    return receivedHeaders;
  }

  #target(path: string, { index, isConsistent, filter }: ConsulQuery): string {
    const searchParams = new URLSearchParams();
    if (this.#datacenter !== '') searchParams.set('dc', this.#datacenter);
    if (filter !== undefined) searchParams.set('filter', filter);
    if (isConsistent === true) searchParams.set('consistent', '');
    if (index !== undefined) {
      searchParams.set('index', `${index}`);
      searchParams.set('wait', `${maxWaitMs / 1_000}s`);
    }
    const basePath = this.#access.server.pathname.replace(/\/+$/, '');
    return `${basePath}/v1/${path}${searchParams.size === 0 ? '' : `?${searchParams}`}`;
  }
}

interface SentRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly query: ConsulQuery;
  readonly body: ReceivedBody;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ConsulError({ reason: `response must be JSON: ${joinLines(messageOf(error))}`, status: 200 });
  }
}

/** A response without a valid index gets index 1, because a query with index 0 never blocks. */
function indexOf(headers: IncomingHttpHeaders): number {
  const index = Number(headers['x-consul-index']);
  return Number.isSafeInteger(index) && index > 0 ? index : 1;
}

function isWithoutHttp2(error: unknown): boolean {
  return error instanceof ApiError && error.failure.kind === 'invalid' && error.message.includes('ALPN h2');
}

function failureOf(error: unknown): { reason: string; status: number } {
  if (!(error instanceof ApiError)) return { reason: joinLines(messageOf(error)), status: 0 };
  const { failure } = error;
  if (failure.kind !== 'status') return { reason: joinLines(failure.message), status: 0 };
  return { reason: `HTTP status ${failure.code}: ${joinLines(failure.message)}`, status: failure.code };
}
