/**
 * The connections of one purpose to one API server: a watch and a burst of writes on one connection disturb each other. As a
 * rule there is one; another is opened when that one leaves, or has no room for another stream.
 */
import type { ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2';
import type { ClusterAccess, TlsMaterial } from '../access/cluster-access.ts';
import { ApiError, statusOf } from '../api-failure.ts';
import { type AnswerReader, type ExchangeLimits, exchange } from './exchange.ts';
import { aborted, Http2Connection, orAborted } from './http2-connection.ts';

/** More streams than these take belong to no mesh; a server that allows one a connection is not asked for hundreds. */
const maxConnections = 8;

/** Of a request that is refused unseen: a server that refuses all of them is told as such. */
const maxTries = 3;

export interface PooledRequest {
  /** Asked for each time that it is sent, in that turn. What it throws is thrown. */
  readonly headers: () => OutgoingHttpHeaders;
  readonly body?: Uint8Array | undefined;
}

export class ConnectionPool {
  readonly #access: ClusterAccess;
  readonly #connectLimitMs: number;
  #connections: Http2Connection[] = [];
  #opening: { readonly done: Promise<void>; readonly cancel: AbortController } | undefined;

  constructor(access: ClusterAccess, connectLimitMs: number) {
    this.#access = access;
    this.#connectLimitMs = connectLimitMs;
  }

  /**
   * One request and its answer. What the server refused before it looked at it (a GOAWAY that was under way) is sent again on
   * another connection, as HTTP/2 allows for any request (RFC 9113 §8.7).
   *
   * @throws ApiError; after a `timeout` no more requests go to that connection: one whose other end is gone without a word looks
   * open for a quarter of an hour; nor after a 401, where it was made with a certificate that may have ended since
   */
  async send(request: PooledRequest, reader: AnswerReader, limits: ExchangeLimits, signal: AbortSignal): Promise<void> {
    for (let tries = 1; ; tries++) {
      const { connection, stream } = await this.#begin(request, signal);
      try {
        await exchange(stream, reader, limits, signal);
        return;
      } catch (error) {
        const kind = error instanceof ApiError ? error.failure.kind : undefined;
        if (kind === 'timeout' || kind === 'going away' || isTimeUp(signal)) connection.leave();
        if (statusOf(error) === 401 && connection.mayShowAnother) connection.leave();
        if (kind !== 'going away' || tries >= maxTries) throw error;
      }
    }
  }

  async #begin(
    { headers, body }: PooledRequest,
    signal: AbortSignal,
  ): Promise<{ readonly connection: Http2Connection; readonly stream: ClientHttp2Stream }> {
    for (;;) {
      if (signal.aborted) throw aborted();
      this.#connections = this.#connections.filter((connection) => !connection.isGone);
      const connection = this.#connections.find(({ hasRoom }) => hasRoom);
      if (connection !== undefined) {
        // Nothing is waited for from here on: another request would take the same room.
        const stream = connection.begin(headers(), body === undefined);
        if (body !== undefined) stream.end(body);
        return { connection, stream };
      }
      if (this.#connections.filter(({ takesStreams }) => takesStreams).length >= maxConnections) {
        throw new ApiError({
          kind: 'closed',
          message: `all ${maxConnections} connections have as many open requests as the server allows`,
        });
      }
      await this.#opened(signal);
    }
  }

  /** All of them answer, those that leave as well, for what still runs there; there is one at least. @returns milliseconds of the slowest. @throws ApiError */
  async ping(limitMs: number, signal: AbortSignal): Promise<number> {
    if (!this.#connections.some(({ takesStreams }) => takesStreams)) await this.#opened(signal);
    const asked = this.#connections.filter(({ isGone }) => !isGone);
    if (asked.length === 0) throw new ApiError({ kind: 'closed', message: 'the connection was closed' });
    return Math.max(...(await Promise.all(asked.map((connection) => connection.ping(limitMs, signal)))));
  }

  /** Those that are open or being opened end, with what runs on them. */
  closeAll(): void {
    this.#opening?.cancel.abort();
    this.#opening = undefined;
    const connections = this.#connections;
    this.#connections = [];
    for (const connection of connections) connection.close();
  }

  /** Ends once a connection was opened; where it is closed meanwhile by `closeAll`, another one is. */
  async #opened(signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        return await orAborted(this.#open(), signal);
      } catch (error) {
        const isReplaced = error instanceof ApiError && error.failure.kind === 'aborted' && !signal.aborted;
        if (!isReplaced) throw error;
      }
    }
  }

  /** One at a time: fifty informers that begin share what the first of them opens. */
  #open(): Promise<void> {
    if (this.#opening === undefined) {
      const cancel = new AbortController();
      const done = this.#connect(cancel.signal);
      const opening = { done, cancel };
      this.#opening = opening;
      const forget = (): void => {
        if (this.#opening === opening) this.#opening = undefined;
      };
      done.then(forget, forget);
    }
    return this.#opening.done;
  }

  async #connect(signal: AbortSignal): Promise<void> {
    const tls = await this.#tls(signal);
    const connection = await Http2Connection.open(this.#access.server, tls, this.#connectLimitMs, signal);
    // Closed meanwhile: whoever closed all knows of none that comes later.
    if (signal.aborted) {
      connection.close();
      throw aborted();
    }
    this.#connections.push(connection);
  }

  /** What files and plugins know of it must come in the time of a connection: others wait for this one. */
  async #tls(signal: AbortSignal): Promise<TlsMaterial> {
    const late = AbortSignal.timeout(this.#connectLimitMs);
    try {
      return await orAborted(this.#access.tls(signal), AbortSignal.any([signal, late]));
    } catch (error) {
      if (!late.aborted || signal.aborted) throw error;
      throw new ApiError({
        kind: 'timeout',
        message: `no credentials for a connection within ${this.#connectLimitMs} ms`,
      });
    }
  }
}

/** The time that was set for waiting ({@link AbortSignal.timeout}) is over. */
function isTimeUp({ reason }: AbortSignal): boolean {
  return reason instanceof DOMException && reason.name === 'TimeoutError';
}
