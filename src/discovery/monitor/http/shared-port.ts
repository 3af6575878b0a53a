/** gRPC and HTTP share a port if `--grpcAddr` is empty. The first bytes of a connection distinguish them. */
import type { Server as HttpServer } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import { ConnectionBounds, type ConnectionBoundsOptions } from '../../../runtime/fences/connection-bounds.ts';
import { openFilesLimit } from '../../../runtime/fences/open-files.ts';

/** Preface of HTTP/2 without TLS (RFC 9113 §3.4). */
const http2Preface = 'PRI * HTTP/2.0';

const firstByteMs = 10_000;

/** @param grpc returns `false` if it cannot accept connections yet, which closes the connection */
export function sharedPort(http: HttpServer, grpc: (socket: Socket) => boolean): Server {
  const bounds = new ConnectionBounds<Socket>(silentConnections());
  return createServer((socket) => {
    socket.on('error', () => socket.destroy());
    if (!bounds.admit(socket, socket.remoteAddress)) return;
    socket.setTimeout(firstByteMs, () => socket.destroy());
    socket.once('data', (firstChunk: Buffer) => {
      socket.setTimeout(0);
      socket.removeAllListeners('timeout');
      // From here on, the limits of the receiving server apply.
      bounds.release(socket);
      socket.pause();
      socket.unshift(firstChunk);
      if (firstChunk.toString('latin1').startsWith(http2Preface.slice(0, firstChunk.length))) {
        if (!grpc(socket)) socket.destroy();
        return;
      }
      http.emit('connection', socket);
      socket.resume();
    });
  });
}

/** Maximum number of connections without received bytes. Lower if the limit of open files is low. */
const maxSilentConnections = 4_096;
const minSilentConnections = 4;

function silentConnections(openFiles = openFilesLimit() ?? Number.POSITIVE_INFINITY): ConnectionBoundsOptions {
  const maxConnections = Math.min(maxSilentConnections, Math.max(minSilentConnections, Math.floor(openFiles / 16)));
  return { maxPerAddress: 512, maxConnections };
}
