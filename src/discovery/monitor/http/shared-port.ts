/** gRPC and HTTP on one port (spec/discovery.md §1.2, `--grpcAddr` empty): a connection is what its first bytes say. */
import type { Server as HttpServer } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import { ConnectionBounds, type ConnectionBoundsOptions } from '../../../runtime/fences/connection-bounds.ts';
import { openFilesLimit } from '../../../runtime/fences/open-files.ts';

/** What an HTTP/2 client without TLS sends first (RFC 9113 §3.4). */
const http2Preface = 'PRI * HTTP/2.0';

/** A connection that says nothing is not waited for any longer. */
const firstByteMs = 10_000;

/**
 * Makes a server whose HTTP/1 connections go to `http`, and whose HTTP/2 connections to the xDS server.
 *
 * @param grpc takes such a connection; false when it cannot yet: the connection is closed
 */
export function sharedPort(http: HttpServer, grpc: (socket: Socket) => boolean): Server {
  const bounds = new ConnectionBounds<Socket>(silentOnes());
  return createServer((socket) => {
    socket.on('error', () => socket.destroy());
    if (!bounds.admit(socket, socket.remoteAddress)) return;
    socket.setTimeout(firstByteMs, () => socket.destroy());
    socket.once('data', (first: Buffer) => {
      socket.setTimeout(0);
      socket.removeAllListeners('timeout');
      // The server that has it now has bounds of its own.
      bounds.release(socket);
      socket.pause();
      socket.unshift(first);
      if (first.toString('latin1').startsWith(http2Preface.slice(0, first.length))) {
        if (!grpc(socket)) socket.destroy();
        return;
      }
      http.emit('connection', socket);
      socket.resume();
    });
  });
}

/** Connections whose kind is not known yet: almost all are proxies in a moment. Fewer where few files may be open. */
const mostSilent = 4_096;
const fewestSilent = 4;

function silentOnes(openFiles = openFilesLimit() ?? Number.POSITIVE_INFINITY): ConnectionBoundsOptions {
  const maxInWhole = Math.min(mostSilent, Math.max(fewestSilent, Math.floor(openFiles / 16)));
  return { maxPerAddress: 512, maxInWhole };
}
