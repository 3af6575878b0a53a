import * as http from 'node:http';
import * as https from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Endpoint, LoadClient } from './client.ts';
import { Exchange, type Expectation } from './exchange.ts';

/**
 * HTTP/1.1 over one connection (`keepAlive`), or over a new connection for each request.
 *
 * Node's agent drops a connection that the server closed or announced to close. As with every client that does not retry, a race remains: a request
 * sent on an idle connection while the server closes it counts as failed.
 */
export function http1Client(endpoint: Endpoint, options: { readonly keepAlive: boolean }): LoadClient {
  const { host, port, authority, ca } = endpoint;
  const connection = { keepAlive: options.keepAlive, maxSockets: 1 };
  // Without session resumption, every connection receives a certificate, so that serial numbers are correct.
  const agent =
    ca === undefined
      ? new http.Agent(connection)
      : new https.Agent({ ...connection, ca, servername: hostOf(authority), maxCachedSessions: 0 });
  const request = ca === undefined ? http.request : https.request;
  return {
    send(path, expectation: Expectation) {
      const outgoing = request({ agent, host, port, path, headers: { host: authority } });
      const exchange = new Exchange(expectation, (reason) => outgoing.destroy(reason));
      outgoing.on('socket', (socket) => followSocket(socket, outgoing, exchange, endpoint));
      outgoing.on('response', (response) => followResponse(response, exchange));
      outgoing.on('error', (error) => exchange.fail(error));
      outgoing.end();
      return exchange.outcome;
    },
    close: () => agent.destroy(),
  };
}

function followSocket(socket: Socket, request: http.ClientRequest, exchange: Exchange, endpoint: Endpoint): void {
  exchange.reusedConnection = request.reusedSocket;
  if (request.reusedSocket) {
    exchange.phase = 'response';
    return;
  }
  const isSecure = endpoint.ca !== undefined;
  socket.once(isSecure ? 'secureConnect' : 'connect', () => {
    exchange.phase = 'response';
    endpoint.onConnected(isSecure ? serialNumberOf(socket as TLSSocket) : undefined);
  });
}

function followResponse(response: http.IncomingMessage, exchange: Exchange): void {
  exchange.headers(response.statusCode ?? 0, response.headers['x-version']);
  response.on('data', (chunk: Buffer) => exchange.data(chunk));
  response.on('error', (error) => exchange.fail(error));
  response.on('end', () => exchange.end(response.complete));
  response.on('close', () => exchange.end(response.complete));
}

/** Serial number of the certificate of this connection. */
export function serialNumberOf(socket: TLSSocket): string | undefined {
  return socket.getPeerCertificate().serialNumber;
}

/** `name:port` without the port. */
export function hostOf(authority: string): string {
  return authority.replace(/:\d+$/, '');
}
