import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { DelayingProxy } from './delaying-proxy.ts';

async function echoThrough(roundTripMs: number): Promise<DelayingProxy> {
  const server = createServer((socket) => socket.on('error', () => {}).pipe(socket));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const proxy = await DelayingProxy.start({ to: (server.address() as AddressInfo).port, roundTripMs });
  onTestFinished(() => {
    proxy.close();
    server.close();
  });
  return proxy;
}

test("a round trip through a delaying proxy takes the proxy's delay, and bytes stay in order", async () => {
  const { port } = await echoThrough(60);
  const socket = connect({ host: '127.0.0.1', port });
  await once(socket, 'connect');
  const startedAt = performance.now();
  let receivedText = '';
  socket.on('data', (chunk) => (receivedText += chunk.toString()));
  for (let i = 0; i < 100; i++) socket.write(`${i} `);
  socket.end();
  await once(socket, 'end');
  // Timers may fire a millisecond early.
  expect(performance.now() - startedAt).toBeGreaterThan(58);
  expect(receivedText).toBe(`${Array.from({ length: 100 }, (_, i) => i).join(' ')} `);
});

test('a delaying proxy that disconnects closes its connections and accepts new ones', async () => {
  const proxy = await echoThrough(0);
  const socket = connect({ host: '127.0.0.1', port: proxy.port });
  socket.on('error', () => {});
  socket.write('x');
  await once(socket, 'data');
  proxy.disconnect();
  await once(socket, 'close');
  const next = connect({ host: '127.0.0.1', port: proxy.port });
  next.write('y');
  expect(String((await once(next, 'data'))[0])).toBe('y');
  next.destroy();
});
