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

async function serveMethods(methods: Record<string, GrpcMethod>): Promise<string> {
  const path = socketPath();
  const server = await GrpcSocketServer.listen(path, { methods: new Map(Object.entries(methods)) });
  onTestFinished(() => server.close());
  return path;
}

async function listenOn(onSocket: (socket: Socket) => void): Promise<string> {
  const path = socketPath();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    onSocket(socket);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return path;
}

const detectedServer = (socket: string, ownership?: Ownership): Promise<unknown> =>
  toPromise(createActor(detectServer(ownership), { input: { socket } }).start());

test('recognizes the server of another agent, and reports no server to an agent that replaces it', async () => {
  const path = await serveMethods({
    [agentMethod]: (call) => {
      call.write(frameOf(new Uint8Array()));
      call.end('OK');
    },
  });
  expect(await detectedServer(path)).toBe('another agent');
  expect(await detectedServer(path, successor)).toBe('nobody');
});

test('never replaces another kind of server, even in an agent that replaces another agent', async () => {
  const path = await serveMethods({});
  expect(await detectedServer(path)).toBe('a server');
  expect(await detectedServer(path, successor)).toBe('a server');
});

test.each([
  ['does not respond to the call', () => serveMethods({ [agentMethod]: () => {} })],
  ['responds with UNAVAILABLE', () => serveMethods({ [agentMethod]: (call) => call.end('UNAVAILABLE', 'ends') })],
  [
    'resets the connection during the call',
    () => serveMethods({ [agentMethod]: (call) => call.stream.session?.destroy() }),
  ],
  ['sends nothing after the connection', () => listenOn(() => {})],
  ['closes the connection immediately', () => listenOn((socket) => void socket.destroy())],
  ['responds with HTTP/1.1', () => listenOn((socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))],
  ['does not exist', async () => socketPath()],
] as const)('ignores a process that %s', async (_, createPath) => {
  const path = await createPath();
  expect(await detectedServer(path)).toBe('nobody');
  expect(await detectedServer(path, successor)).toBe('nobody');
});
