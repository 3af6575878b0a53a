import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { Endpoint, LoadClient } from './client.ts';
import { Exchange } from './exchange.ts';
import { hostOf, serialNumberOf } from './http1-client.ts';

/**
 * HTTP/2 over one session at a time. After a GOAWAY the requests in flight must still be answered on the old session
 * (Node closes it when the last one is); the next request opens a new session.
 */
export function http2Client(endpoint: Endpoint): LoadClient {
  const sessions = new Set<ClientHttp2Session>();
  const used = new WeakSet<ClientHttp2Session>();
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
    // Its streams fail with the session's error and are counted; an error without streams costs no request.
    session.on('error', retire);
    session.on('connect', (_, socket) => {
      endpoint.onConnected(endpoint.ca === undefined ? undefined : serialNumberOf(socket as TLSSocket));
    });
    return session;
  };

  return {
    send(path, expectation) {
      if (current === undefined || current.closed || current.destroyed) current = openSession();
      const session = current;
      const stream = session.request({ ':path': path, ':authority': endpoint.authority });
      const exchange = new Exchange(expectation, () => stream.close(constants.NGHTTP2_CANCEL));
      exchange.reusedConnection = used.has(session);
      used.add(session);
      if (session.connecting) session.once('connect', () => waitForResponse(exchange));
      else waitForResponse(exchange);
      followStream(stream, exchange);
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

function followStream(stream: ClientHttp2Stream, exchange: Exchange): void {
  let ended = false;
  stream.on('response', (headers) => exchange.headers(headers[':status'] ?? 0, headers['x-version']));
  stream.on('data', (chunk: Buffer) => exchange.data(chunk));
  stream.on('error', (error) => exchange.fail(error));
  stream.on('end', () => {
    ended = true;
  });
  // A stream that is reset without an error code also ends; only `close` knows both.
  stream.on('close', () => {
    exchange.end(ended && !stream.aborted && stream.rstCode === constants.NGHTTP2_NO_ERROR && exchange.status !== 0);
  });
}
