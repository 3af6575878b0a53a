import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';

/** Reads lines as long as the other side lives; that it dies in the middle of one is nothing to be told here. */
export function readLines(socket: Socket, onLine: (line: string) => void): void {
  socket.on('error', () => {});
  createInterface({ input: socket })
    .on('line', onLine)
    .on('error', () => {});
}
