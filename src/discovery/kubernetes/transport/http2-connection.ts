/** A connection opens when the server sends SETTINGS. After a GOAWAY or an error, it accepts no more streams and finishes running ones. */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { messageOf } from '../../../runtime/errors.ts';
import type { TlsMaterial } from '../access/cluster-access.ts';
import { ApiError, invalidResponse } from '../api-failure.ts';

/** Flow control windows: received bytes that are not read yet. */
const streamWindowBytes = 1024 * 1024;
const connectionWindowBytes = 8 * 1024 * 1024;

/** If a younger connection gets a 401, an outdated certificate is not the cause. */
const minAgeForNewerCertificateMs = 1_000;

export class Http2Connection {
  readonly #session: ClientHttp2Session;
  readonly #runningStreams = new Set<ClientHttp2Stream>();
  readonly #hasCertificate: boolean;
  readonly #openedAt = performance.now();

  private constructor(session: ClientHttp2Session, hasCertificate: boolean) {
    this.#session = session;
    this.#hasCertificate = hasCertificate;
  }

  /** @throws ApiError `unreachable`, `timeout`, `invalid`, `credentials`, `aborted` */
  static openConnection(server: URL, tls: TlsMaterial, limitMs: number, signal: AbortSignal): Promise<Http2Connection> {
    return new Promise((resolve, reject) => {
      const session = connectSession(server, tls);
      const fail = (error: ApiError): void => {
        markSettled();
        session.destroy();
        reject(error);
      };
      const timer = setTimeout(
        () => fail(new ApiError({ kind: 'timeout', message: `${server.host}: no connection within ${limitMs} ms` })),
        limitMs,
      );
      const onAbort = (): void => fail(abortedError());
      const onError = (error: Error): void =>
        fail(new ApiError({ kind: 'unreachable', message: `${server.host}: ${messageOf(error)}` }, { cause: error }));
      const onClose = (): void => onError(new Error('the connection was closed'));
      const markSettled = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        session.off('close', onClose);
      };
      // This listener stays, because the streams report an error that ends the session later.
      session.on('error', onError);
      session.once('close', onClose);
      signal.addEventListener('abort', onAbort);
      if (signal.aborted) return onAbort();
      session.once('connect', (_, socket) => {
        // The session does not report TLS alerts after the handshake, such as for a missing client certificate in TLS
        // 1.3.
        socket.once('error', onError);
        if (session.alpnProtocol !== 'h2') fail(invalidResponse(`${server.host} does not support HTTP/2 (ALPN h2)`));
      });
      // SETTINGS contain the stream limit.
      session.once('remoteSettings', () => {
        markSettled();
        session.setLocalWindowSize(connectionWindowBytes);
        resolve(new Http2Connection(session, tls.cert !== undefined));
      });
    });
  }

  /** Whether the connection uses a client certificate for which a renewed one may exist. */
  get mayHaveNewerCertificate(): boolean {
    return this.#hasCertificate && performance.now() - this.#openedAt >= minAgeForNewerCertificateMs;
  }

  /** `false` after a GOAWAY, when Node closes the session. */
  get acceptsStreams(): boolean {
    return !(this.#session.closed || this.#session.destroyed);
  }

  get isDestroyed(): boolean {
    return this.#session.destroyed;
  }

  /**
   * Sends the headers synchronously.
   *
   * @throws ApiError `going away`
   */
  beginRequest(headers: OutgoingHttpHeaders, endStream: boolean): ClientHttp2Stream {
    if (this.acceptsStreams) {
      try {
        const stream = this.#session.request(headers, { endStream });
        this.#runningStreams.add(stream);
        stream.once('close', () => this.#runningStreams.delete(stream));
        return stream;
      } catch (error) {
        throw new ApiError({ kind: 'going away', message: messageOf(error) });
      }
    }
    throw new ApiError({
      kind: 'going away',
      message: 'the server accepts no more requests on this connection (GOAWAY)',
    });
  }

  stopAccepting(): void {
    this.#session.close();
  }

  /** Callers must check this, because a stream beyond the limit would wait for another one to end. */
  get hasFreeStream(): boolean {
    return (
      this.acceptsStreams && this.#runningStreams.size < (this.#session.remoteSettings.maxConcurrentStreams ?? 100)
    );
  }

  /**
   * @returns round-trip time in milliseconds
   * @throws ApiError `timeout`, `closed`, `aborted`
   */
  ping(limitMs: number, signal: AbortSignal): Promise<number> {
    return new Promise((resolve, reject) => {
      const markSettled = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
      };
      const fail = (error: ApiError): void => {
        markSettled();
        reject(error);
      };
      const onAbort = (): void => fail(abortedError());
      const timer = setTimeout(
        () => fail(new ApiError({ kind: 'timeout', message: `no response to an HTTP/2 PING within ${limitMs} ms` })),
        limitMs,
      );
      signal.addEventListener('abort', onAbort);
      if (signal.aborted) return onAbort();
      const onClosed = (): void => fail(new ApiError({ kind: 'closed', message: 'the connection was closed' }));
      try {
        // `ping` returns false if too many pings are pending. The timeout covers that case.
        this.#session.ping((error, durationMs) => {
          if (error !== null) return onClosed();
          markSettled();
          resolve(durationMs);
        });
      } catch {
        onClosed();
      }
    });
  }

  /** Cancels the streams explicitly: if only the session were closed, they would end without an error. */
  close(): void {
    for (const stream of this.#runningStreams) stream.close(constants.NGHTTP2_CANCEL);
    this.#session.destroy();
  }
}

/** @throws ApiError `credentials` if a certificate, key or CA is invalid, or they do not match */
function connectSession(server: URL, tls: TlsMaterial): ClientHttp2Session {
  try {
    return connect(server.origin, {
      ...tls,
      ALPNProtocols: ['h2'],
      settings: { enablePush: false, initialWindowSize: streamWindowBytes },
    });
  } catch (error) {
    throw new ApiError({ kind: 'credentials', message: `${server.host}: ${messageOf(error)}` }, { cause: error });
  }
}

export function abortedError(): ApiError {
  return new ApiError({ kind: 'aborted', message: 'request cancelled' });
}

/**
 * The work continues for other callers.
 *
 * @throws ApiError `aborted`, or the error of the work
 */
export function rejectOnAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(abortedError());
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
