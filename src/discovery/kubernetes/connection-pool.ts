/**
 * The connections of one purpose to one API server: a watch and a burst of writes on one connection disturb each other. As a
 * rule there is one; another is opened when that one leaves, or has no room for another stream.
 */
import type { ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2';
import type { ClusterAccess } from './access/cluster-access.ts';
import { ApiError } from './api-failure.ts';
import { aborted, Http2Connection, orAborted } from './http2-connection.ts';

/** More streams than these take belong to no mesh; a server that allows one a connection is not asked for hundreds. */
const maxConnections = 8;

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
   * @param headers asked for once there is a connection, in the turn in which they are sent
   * @throws ApiError
   */
  async begin(headers: () => OutgoingHttpHeaders, endStream: boolean, signal: AbortSignal): Promise<ClientHttp2Stream> {
    for (;;) {
      if (signal.aborted) throw aborted();
      this.#connections = this.#connections.filter((connection) => !(connection.isClosed && connection.isIdle));
      const free = this.#connections.find((connection) => connection.hasRoom);
      // Nothing is waited for between both: another request would take the same room.
      if (free !== undefined) return free.begin(headers(), endStream);
      if (this.#connections.filter((connection) => connection.takesStreams).length >= maxConnections) {
        throw new ApiError({
          kind: 'closed',
          message: `all ${maxConnections} connections have all the requests that they take`,
        });
      }
      await orAborted(this.#open(), signal);
    }
  }

  /** All of them answer; there is one at least. @returns milliseconds of the slowest. @throws ApiError */
  async ping(limitMs: number, signal: AbortSignal): Promise<number> {
    if (!this.#connections.some((connection) => connection.takesStreams)) await orAborted(this.#open(), signal);
    const asked = this.#connections.filter((connection) => !connection.isClosed);
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
    const tls = await this.#access.tls(signal);
    const connection = await Http2Connection.open(this.#access.server, tls, this.#connectLimitMs, signal);
    // Closed meanwhile: whoever closed all knows of none that comes later.
    if (signal.aborted) {
      connection.close();
      throw aborted();
    }
    this.#connections.push(connection);
  }
}
