import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';

/** Reads lines until the peer disconnects; an incomplete last line is ignored. */
export function readLines(socket: Socket, onLine: (line: string) => void): void {
  socket.on('error', () => {});
  createInterface({ input: socket })
    .on('line', onLine)
    .on('error', () => {});
}
