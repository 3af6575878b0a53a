/** Detects another secret server only if it responds. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createActor, toPromise } from 'xstate';
import { frameOf } from '../../runtime/grpc/grpc-frames.ts';
import { Ownership } from '../../runtime/ownership.ts';
import { type GrpcMethod, GrpcSocketServer } from '../grpc/grpc-server.ts';
import { detectServer } from './detect-server.ts';
import { agentMethod } from './secret-server.ts';

const successor = new Ownership(false);

function socketPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'look-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, 's');
}

async function served(methods: Record<string, GrpcMethod>): Promise<string> {
  const path = socketPath();
  const server = await GrpcSocketServer.listen(path, { methods: new Map(Object.entries(methods)) });
  onTestFinished(() => server.close());
  return path;
}

async function taken(take: (socket: Socket) => void): Promise<string> {
  const path = socketPath();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    take(socket);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return path;
}

const found = (socket: string, ownership?: Ownership): Promise<unknown> =>
  toPromise(createActor(detectServer(ownership), { input: { socket } }).start());

test('recognizes another agent, which its successor ignores', async () => {
  const path = await served({
    [agentMethod]: (call) => {
      call.write(frameOf(new Uint8Array()));
      call.end('OK');
    },
  });
  expect(await found(path)).toBe('another agent');
  expect(await found(path, successor)).toBe('nobody');
});

test('never replaces another kind of server, even in an agent that replaces another agent', async () => {
  const path = await served({});
  expect(await found(path)).toBe('a server');
  expect(await found(path, successor)).toBe('a server');
});

test.each([
  ['does not respond to the call', () => served({ [agentMethod]: () => {} })],
  ['responds with UNAVAILABLE', () => served({ [agentMethod]: (call) => call.end('UNAVAILABLE', 'ends') })],
  ['resets the connection during the call', () => served({ [agentMethod]: (call) => call.stream.session?.destroy() })],
  ['sends nothing after the connection', () => taken(() => {})],
  ['closes the connection immediately', () => taken((socket) => void socket.destroy())],
  ['responds with HTTP/1.1', () => taken((socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))],
  ['does not exist', async () => socketPath()],
] as const)('ignores a process that %s', async (_, place) => {
  const path = await place();
  expect(await found(path)).toBe('nobody');
  expect(await found(path, successor)).toBe('nobody');
});
