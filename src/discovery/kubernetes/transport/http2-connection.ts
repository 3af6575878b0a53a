/**
 * One HTTP/2 connection to an API server.
 *
 * It is `opening` until the server has said its settings, `open` until a GOAWAY or its end, then `leaving`: it takes no more
 * streams, and those that run go on to their end. A GOAWAY without an error is normal: API servers send it now and then, so
 * that clients spread.
 */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { messageOf } from '../../../runtime/errors.ts';
import type { TlsMaterial } from '../access/cluster-access.ts';
import { ApiError, invalid } from '../api-failure.ts';

/** Of one stream, and of all of a connection: what may be under way before it was read. */
const streamWindowBytes = 1024 * 1024;
const connectionWindowBytes = 8 * 1024 * 1024;

/** What was read for a connection is the newest for so long: whoever refuses it is not asked over another one each time. */
const freshMs = 1_000;

export class Http2Connection {
  readonly #session: ClientHttp2Session;
  readonly #running = new Set<ClientHttp2Stream>();
  readonly #hasCertificate: boolean;
  readonly #openedAt = performance.now();

  private constructor(session: ClientHttp2Session, hasCertificate: boolean) {
    this.#session = session;
    this.#hasCertificate = hasCertificate;
  }

  /** @throws ApiError `unreachable`, `timeout`, `invalid`, `credentials`, `aborted` */
  static open(server: URL, tls: TlsMaterial, limitMs: number, signal: AbortSignal): Promise<Http2Connection> {
    return new Promise((resolve, reject) => {
      const session = begun(server, tls);
      const fail = (error: ApiError): void => {
        settle();
        session.destroy();
        reject(error);
      };
      const timer = setTimeout(
        () => fail(new ApiError({ kind: 'timeout', message: `${server.host}: no connection within ${limitMs} ms` })),
        limitMs,
      );
      const onAbort = (): void => fail(aborted());
      const onError = (error: Error): void =>
        fail(new ApiError({ kind: 'unreachable', message: `${server.host}: ${messageOf(error)}` }, { cause: error }));
      const onClose = (): void => onError(new Error('the connection was closed'));
      const settle = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        session.off('close', onClose);
      };
      // For good: what ends the session later ends its streams, which tell.
      session.on('error', onError);
      session.once('close', onClose);
      signal.addEventListener('abort', onAbort);
      if (signal.aborted) return onAbort();
      session.once('connect', (_, socket) => {
        // A TLS alert after the handshake, such as a missing client certificate in TLS 1.3, is no error of the session.
        socket.once('error', onError);
        if (session.alpnProtocol !== 'h2') fail(invalid(`${server.host} does not support HTTP/2 (ALPN h2)`));
      });
      // How many streams it takes is among them.
      session.once('remoteSettings', () => {
        settle();
        session.setLocalWindowSize(connectionWindowBytes);
        resolve(new Http2Connection(session, tls.cert !== undefined));
      });
    });
  }

  /** It shows a certificate of ours, as it was when it was opened: by now there may be a newer one. */
  get mayShowAnother(): boolean {
    return this.#hasCertificate && performance.now() - this.#openedAt >= freshMs;
  }

  /** None once it is leaving: Node closes a session that was sent a GOAWAY. */
  get takesStreams(): boolean {
    return !(this.#session.closed || this.#session.destroyed);
  }

  get isGone(): boolean {
    return this.#session.destroyed;
  }

  /** The bytes go out in this turn. @throws ApiError `going away` */
  begin(headers: OutgoingHttpHeaders, endStream: boolean): ClientHttp2Stream {
    if (this.takesStreams) {
      try {
        const stream = this.#session.request(headers, { endStream });
        this.#running.add(stream);
        stream.once('close', () => this.#running.delete(stream));
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

  /** As after a GOAWAY; once nothing runs on it, it ends. */
  leave(): void {
    this.#session.close();
  }

  /** One that asks for more waits until another ends: whether there is room is asked before. */
  get hasRoom(): boolean {
    return this.takesStreams && this.#running.size < (this.#session.remoteSettings.maxConcurrentStreams ?? 100);
  }

  /** @returns milliseconds until the answer. @throws ApiError `timeout`, `closed`, `aborted` */
  ping(limitMs: number, signal: AbortSignal): Promise<number> {
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
      };
      const fail = (error: ApiError): void => {
        settle();
        reject(error);
      };
      const onAbort = (): void => fail(aborted());
      const timer = setTimeout(
        () => fail(new ApiError({ kind: 'timeout', message: `no response to an HTTP/2 PING within ${limitMs} ms` })),
        limitMs,
      );
      signal.addEventListener('abort', onAbort);
      if (signal.aborted) return onAbort();
      const closed = (): void => fail(new ApiError({ kind: 'closed', message: 'the connection was closed' }));
      try {
        // False: too many are unanswered, which the limit of each of them tells.
        this.#session.ping((error, durationMs) => {
          if (error !== null) return closed();
          settle();
          resolve(durationMs);
        });
      } catch {
        closed();
      }
    });
  }

  /** What runs on it ends as cut off: an end of the connection alone looks to its streams as if the server had ended them. */
  close(): void {
    for (const stream of this.#running) stream.close(constants.NGHTTP2_CANCEL);
    this.#session.destroy();
  }
}

/** @throws ApiError `credentials`: a certificate, a key or an authority is none, or they do not belong together */
function begun(server: URL, tls: TlsMaterial): ClientHttp2Session {
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

export function aborted(): ApiError {
  return new ApiError({ kind: 'aborted', message: 'request cancelled' });
}

/** What others wait for as well goes on. @throws ApiError `aborted`, and what the work throws */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(aborted());
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
