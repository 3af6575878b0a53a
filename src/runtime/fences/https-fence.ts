/** {@link createFencedServer} with TLS, in a separate file because other programs do not load `node:https`. */
import { createServer, type Server } from 'node:https';
import type { Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import { fenceServer, type HttpFenceOptions, type HttpServe, httpLimitsOf, serverOptionsOf } from './http-fence.ts';

/** A connection without a handshake counts as idle, and is closed after `headersMs`. */
export function createFencedTlsServer(tls: TlsOptions, serve: HttpServe, options: HttpFenceOptions = {}): Server {
  const limits = httpLimitsOf(options);
  const server = createServer({ ...tls, ...serverOptionsOf(limits), handshakeTimeout: limits.headersMs });
  /** Accepted connections by client, because Node does not expose the connection under a TLS socket. */
  const connections = new Map<string, Socket>();
  server.on('connection', (socket: Socket) => {
    const client = clientOf(socket);
    connections.set(client, socket);
    socket.once('close', () => {
      if (connections.get(client) === socket) connections.delete(client);
    });
  });
  server.on('tlsClientError', (_, socket) => socket.destroy());
  return fenceServer(server, serve, limits, options, (socket) => connections.get(clientOf(socket)) ?? socket);
}

function clientOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}
