import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { Endpoint, LoadClient } from './client.ts';
import { Exchange } from './exchange.ts';
import { hostOf, serialNumberOf } from './http1-client.ts';

/** RFC 9113 §6.2 */
const headersFrame = 1;

/**
 * HTTP/2 over one session at a time. After a GOAWAY, requests in flight complete on the old session (Node closes it with the last one); the next
 * request opens a new session.
 *
 * A GOAWAY may arrive between the call that sends a request and the writing of its HEADERS. No stream may be opened after it (RFC 9113 §6.8), so
 * nghttp2 drops the unsent frame. Such a request is sent on a new session and counted as overtaken. This is not a retry, because none of its bytes
 * were sent. REFUSED_STREAM from a server is a failure.
 */
export function http2Client(endpoint: Endpoint): LoadClient {
  const sessions = new Set<ClientHttp2Session>();
  const usedSessions = new WeakSet<ClientHttp2Session>();
  let current: ClientHttp2Session | undefined;

  const openSession = (): ClientHttp2Session => {
    const session = connectTo(endpoint);
    sessions.add(session);
    const retire = (): void => {
      if (current === session) current = undefined;
    };
    session.on('goaway', retire);
    session.on('close', () => {
      retire();
      sessions.delete(session);
    });
    // Its streams fail with the session's error and are counted; an error without streams affects no request.
    session.on('error', retire);
    session.on('connect', (_, socket) => {
      endpoint.onConnected(endpoint.ca === undefined ? undefined : serialNumberOf(socket as TLSSocket));
    });
    return session;
  };

  const startStream = (path: string, exchange: Exchange): ClientHttp2Stream => {
    if (current === undefined || current.closed || current.destroyed) current = openSession();
    const session = current;
    const stream = session.request({ ':path': path, ':authority': endpoint.authority });
    exchange.reusedConnection = usedSessions.has(session);
    exchange.phase = session.connecting ? 'connect' : 'response';
    usedSessions.add(session);
    if (session.connecting) session.once('connect', () => waitForResponse(exchange));
    return stream;
  };

  return {
    send(path, expectation) {
      let stream: ClientHttp2Stream | undefined;
      const exchange = new Exchange(expectation, () => stream?.close(constants.NGHTTP2_CANCEL));
      const sendOnCurrent = (): void => {
        stream = startStream(path, exchange);
        followStream(stream, exchange, () => {
          endpoint.onOvertaken();
          sendOnCurrent();
        });
      };
      sendOnCurrent();
      return exchange.outcome;
    },
    close() {
      for (const session of sessions) session.destroy();
    },
  };
}

function connectTo(endpoint: Endpoint): ClientHttp2Session {
  const { host, port, authority, ca } = endpoint;
  return ca === undefined
    ? connect(`http://${host}:${port}`)
    : connect(`https://${host}:${port}`, { ca, servername: hostOf(authority) });
}

function waitForResponse(exchange: Exchange): void {
  if (exchange.phase === 'connect') exchange.phase = 'response';
}

/** @param onUnsent called instead of an end if the session closed before the HEADERS of the request were written */
function followStream(stream: ClientHttp2Stream, exchange: Exchange, onUnsent: () => void): void {
  let hasEnded = false;
  let unsent = false;
  stream.on('frameError', (type) => {
    unsent = type === headersFrame && stream.session?.closed !== false;
  });
  stream.on('response', (headers) => exchange.headers(headers[':status'] ?? 0, headers['x-version']));
  stream.on('data', (chunk: Buffer) => exchange.data(chunk));
  stream.on('error', (error) => {
    if (!unsent) exchange.fail(error);
  });
  stream.on('end', () => {
    hasEnded = true;
  });
  // A stream that is reset without an error code also ends; only `close` distinguishes both.
  stream.on('close', () => {
    const isComplete =
      hasEnded && !stream.aborted && stream.rstCode === constants.NGHTTP2_NO_ERROR && exchange.status !== 0;
    if (unsent) onUnsent();
    else exchange.end(isComplete);
  });
}
