/** Attacks over raw connections. */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Draw } from '../../random-config/draw.ts';

/** Time limit for a response; only the state of the program afterwards matters. */
const responseLimitMs = 40;

/**
 * Sends bytes to a port of this host, in one piece or several, and closes the connection in a random way.
 *
 * @returns received bytes
 */
export async function throwBytes(port: number, bytes: Buffer, draw: Draw): Promise<Buffer> {
  const receivedChunks: Buffer[] = [];
  const socket = await openConnection(port);
  if (socket === undefined) return Buffer.alloc(0);
  socket.on('data', (chunk) => receivedChunks.push(chunk));
  if (draw.chance(0.1)) socket.pause();
  const cutIndex = draw.chance(0.3) ? draw.int(0, bytes.length) : bytes.length;
  socket.write(bytes.subarray(0, cutIndex));
  if (cutIndex < bytes.length) {
    await sleep(draw.int(0, 20));
    if (draw.chance(0.7)) socket.write(bytes.subarray(cutIndex));
  }
  if (draw.chance(0.5)) socket.end();
  await sleep(draw.int(1, responseLimitMs));
  if (draw.chance(0.3)) socket.resetAndDestroy();
  else socket.destroy();
  return Buffer.concat(receivedChunks);
}

/** `undefined` if the connection is refused; a later check reports that. */
function openConnection(port: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('connect', () => resolve(socket));
    socket.on('error', () => resolve(undefined));
  });
}
