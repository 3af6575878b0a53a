/** Each purpose has its own pool: on a shared connection, watches and bursts of writes would delay each other. */
import type { ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2';
import type { ClusterAccess, TlsMaterial } from '../access/cluster-access.ts';
import { ApiError, statusOf } from '../api-failure.ts';
import { type ExchangeLimits, exchange, type ResponseReader } from './exchange.ts';
import { abortedError, Http2Connection, rejectOnAbort } from './http2-connection.ts';

/** Sufficient for any mesh. The limit protects a server that allows one stream per connection from hundreds of connections. */
const maxConnections = 8;

const maxAttempts = 3;

export interface PooledRequest {
  /** Called synchronously before each send. Errors are passed on. */
  readonly headers: () => OutgoingHttpHeaders;
  readonly body?: Uint8Array | undefined;
}

export class ConnectionPool {
  readonly #access: ClusterAccess;
  readonly #connectLimitMs: number;
  #connections: Http2Connection[] = [];
  #pendingConnection: { readonly done: Promise<void>; readonly cancel: AbortController } | undefined;

  constructor(access: ClusterAccess, connectLimitMs: number) {
    this.#access = access;
    this.#connectLimitMs = connectLimitMs;
  }

  /**
   * Repeats a request that the server refused without processing (for example after GOAWAY) on another connection, as RFC 9113 §8.7 allows.
   *
   * @throws ApiError. The connection accepts no more requests after a `timeout`, or after a 401 if its client certificate may have expired.
   */
  async send(
    request: PooledRequest,
    reader: ResponseReader,
    limits: ExchangeLimits,
    signal: AbortSignal,
  ): Promise<void> {
    for (let attempts = 1; ; attempts++) {
      const { connection, stream } = await this.#beginRequest(request, signal);
      try {
        await exchange(stream, reader, limits, signal);
        return;
      } catch (error) {
        const kind = error instanceof ApiError ? error.failure.kind : undefined;
        if (kind === 'timeout' || kind === 'going away' || isTimeUp(signal)) connection.stopAccepting();
        if (statusOf(error) === 401 && connection.mayHaveNewerCertificate) connection.stopAccepting();
        if (kind !== 'going away' || attempts >= maxAttempts) throw error;
      }
    }
  }

  async #beginRequest(
    { headers, body }: PooledRequest,
    signal: AbortSignal,
  ): Promise<{ readonly connection: Http2Connection; readonly stream: ClientHttp2Stream }> {
    for (;;) {
      if (signal.aborted) throw abortedError();
      this.#connections = this.#connections.filter((connection) => !connection.isDestroyed);
      const connection = this.#connections.find(({ hasFreeStream }) => hasFreeStream);
      if (connection !== undefined) {
        // There must be no await from here on. Otherwise, another request could take the last free stream.
        const stream = connection.beginRequest(headers(), body === undefined);
        if (body !== undefined) stream.end(body);
        return { connection, stream };
      }
      if (this.#connections.filter(({ acceptsStreams }) => acceptsStreams).length >= maxConnections) {
        throw new ApiError({
          kind: 'closed',
          message: `all ${maxConnections} connections have as many open requests as the server allows`,
        });
      }
      await this.#waitForConnection(signal);
    }
  }

  /**
   * Opens a connection if none exists.
   *
   * @returns the longest round-trip time in milliseconds
   * @throws ApiError
   */
  async ping(limitMs: number, signal: AbortSignal): Promise<number> {
    if (!this.#connections.some(({ acceptsStreams }) => acceptsStreams)) await this.#waitForConnection(signal);
    const connections = this.#connections.filter(({ isDestroyed }) => !isDestroyed);
    if (connections.length === 0) throw new ApiError({ kind: 'closed', message: 'the connection was closed' });
    return Math.max(...(await Promise.all(connections.map((connection) => connection.ping(limitMs, signal)))));
  }

  closeAll(): void {
    this.#pendingConnection?.cancel.abort();
    this.#pendingConnection = undefined;
    const connections = this.#connections;
    this.#connections = [];
    for (const connection of connections) connection.close();
  }

  async #waitForConnection(signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        return await rejectOnAbort(this.#openConnection(), signal);
      } catch (error) {
        const isReplaced = error instanceof ApiError && error.failure.kind === 'aborted' && !signal.aborted;
        if (!isReplaced) throw error;
      }
    }
  }

  /** Opens one connection at a time, so that fifty starting informers share it. */
  #openConnection(): Promise<void> {
    if (this.#pendingConnection === undefined) {
      const cancel = new AbortController();
      const connected = this.#connect(cancel.signal);
      const pendingConnection = { done: connected, cancel };
      this.#pendingConnection = pendingConnection;
      const clearPending = (): void => {
        if (this.#pendingConnection === pendingConnection) this.#pendingConnection = undefined;
      };
      connected.then(clearPending, clearPending);
    }
    return this.#pendingConnection.done;
  }

  async #connect(signal: AbortSignal): Promise<void> {
    const tls = await this.#tls(signal);
    const connection = await Http2Connection.openConnection(this.#access.server, tls, this.#connectLimitMs, signal);
    // `closeAll` cannot close connections that open later.
    if (signal.aborted) {
      connection.close();
      throw abortedError();
    }
    this.#connections.push(connection);
  }

  /** Files and plugins must provide credentials within the timeout of a connection, because other requests wait for it. */
  async #tls(signal: AbortSignal): Promise<TlsMaterial> {
    const connectTimeout = AbortSignal.timeout(this.#connectLimitMs);
    try {
      return await rejectOnAbort(this.#access.tls(signal), AbortSignal.any([signal, connectTimeout]));
    } catch (error) {
      if (!connectTimeout.aborted || signal.aborted) throw error;
      throw new ApiError({
        kind: 'timeout',
        message: `no credentials for a connection within ${this.#connectLimitMs} ms`,
      });
    }
  }
}

function isTimeUp({ reason }: AbortSignal): boolean {
  return reason instanceof DOMException && reason.name === 'TimeoutError';
}
