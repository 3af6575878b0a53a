import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { generateLoad } from './generator.ts';

async function serve(onConnection: (socket: Socket, index: number) => void): Promise<number> {
  let connections = 0;
  const server = createServer((socket) => {
    socket.on('error', () => {});
    onConnection(socket, ++connections);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const run = (port: number, other = port) =>
  generateLoad({
    target: { host: '127.0.0.1', port, authority: 'sample.localhost' },
    clients: [
      { kind: 'tcp', count: 2 },
      { kind: 'tcp', count: 1, name: 'other', target: { host: '127.0.0.1', port: other, authority: 'other' } },
    ],
    maxDurationMs: 5_000,
    maxRequests: 12,
  }).finished;

test('TCP clients open a connection for each line, and plans with different names are counted separately', async () => {
  const one = await serve((socket) => socket.on('data', () => socket.write('v1\n')));
  const two = await serve((socket) => socket.on('data', () => socket.write('v2\n')));
  const report = await run(one, two);
  expect(report).toMatchObject({ total: 12, failed: 0, kinds: { tcp: { connections: 12 } } });
  const { tcp, other } = report.byName;
  expect(report.versions).toEqual({ v1: tcp!.total, v2: other!.total });
  expect(other!.total).toBeGreaterThan(0);
});

test('a connection that the server closes without sending bytes counts as a failure', async () => {
  const port = await serve((socket, index) =>
    index === 5 ? socket.end() : socket.on('data', () => socket.write('v1\n')),
  );
  const { failed, byName } = await run(port);
  expect(failed).toBe(1);
  const reasons = [byName.tcp, byName.other].flatMap((one) => Object.keys(one?.reasons ?? {}));
  expect(reasons).toEqual(['TRUNCATED the connection ended before the response did']);
});
