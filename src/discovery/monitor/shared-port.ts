/** gRPC and HTTP on one port (spec/discovery.md §1.2, `--grpcAddr` empty): a connection is what its first bytes say. */
import type { Server as HttpServer } from 'node:http';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** What an HTTP/2 client without TLS sends first (RFC 9113 §3.4). */
const http2Preface = 'PRI * HTTP/2.0';

/**
 * Makes a server whose HTTP/1 connections go to `http`, and whose HTTP/2 connections go to a port of loopback.
 *
 * @param grpcPort undefined while nobody listens there: the connection is closed
 */
export function sharedPort(http: HttpServer, grpcPort: () => number | undefined): Server {
  return createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', (first: Buffer) => {
      if (!first.toString('latin1').startsWith(http2Preface.slice(0, first.length))) {
        socket.pause();
        socket.unshift(first);
        http.emit('connection', socket);
        socket.resume();
        return;
      }
      const port = grpcPort();
      if (port === undefined) socket.destroy();
      else join(socket, connect(port, '127.0.0.1'), first);
    });
  });
}

function join(client: Socket, server: Socket, first: Buffer): void {
  server.on('error', () => client.destroy());
  client.on('close', () => server.destroy());
  server.on('close', () => client.destroy());
  server.write(first);
  client.pipe(server).pipe(client);
}
