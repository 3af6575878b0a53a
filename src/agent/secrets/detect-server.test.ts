/** Detection of another secret server: only one that responds counts. */
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

test('a server that identifies as an agent is another agent, and is ignored by its successor', async () => {
  const path = await served({
    [agentMethod]: (call) => {
      call.write(frameOf(new Uint8Array()));
      call.end('OK');
    },
  });
  expect(await found(path)).toBe('another agent');
  expect(await found(path, successor)).toBe('nobody');
});

test('a server that is no agent keeps serving, also for an agent that replaces another one', async () => {
  const path = await served({});
  expect(await found(path)).toBe('a server');
  expect(await found(path, successor)).toBe('a server');
});

test.each([
  ['says nothing', () => served({ [agentMethod]: () => {} })],
  ['is ending', () => served({ [agentMethod]: (call) => call.end('UNAVAILABLE', 'ends') })],
  ['breaks off', () => served({ [agentMethod]: (call) => call.stream.session?.destroy() })],
  ['is silent from the start', () => taken(() => {})],
  ['hangs up', () => taken((socket) => void socket.destroy())],
  ['speaks something else', () => taken((socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))],
  ['is not there', async () => socketPath()],
] as const)('a process that %s does not count as a server', async (_, place) => {
  const path = await place();
  expect(await found(path)).toBe('nobody');
  expect(await found(path, successor)).toBe('nobody');
});
