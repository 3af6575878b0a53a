/** Streams that one end has closed: the server sends nothing, and the client gets an error. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { constants, createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import type { GrpcError } from '../../runtime/grpc/call-status.ts';
import { GrpcConnection, onCallEnd } from '../../runtime/grpc/grpc-client.ts';
import { GrpcSocketServer, type ServerCall } from './grpc-server.ts';

const cleanups: (() => unknown)[] = [];
afterEach(() => {
  for (const end of cleanups.splice(0).reverse()) end();
});

test('removes a stream that its client has reset, without response or error', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'grpc-'));
  cleanups.push(() => rmSync(directory, { recursive: true }));
  const { promise, resolve } = Promise.withResolvers<unknown>();
  let endedCall: ServerCall | undefined;
  const endCall = (call: ServerCall) => {
    endedCall = call;
    try {
      call.write(Buffer.from('more'));
      call.end('INVALID_ARGUMENT', 'no message');
      resolve('nothing');
    } catch (error) {
      resolve(error);
    }
  };
  const server = await GrpcSocketServer.listen(join(directory, 's'), {
    // The reader gets the reset before the stream is destroyed.
    methods: new Map([['/a/b', (call) => call.stream.once('aborted', () => endCall(call))]]),
  });
  cleanups.push(() => server.close());
  const connection = await GrpcConnection.open({ address: { path: join(directory, 's') } });
  cleanups.push(() => connection.close());
  const stream = connection.start('/a/b', {});
  stream.on('error', () => {});
  stream.write(Buffer.alloc(1_000), () => stream.close(constants.NGHTTP2_CANCEL));
  expect(await promise).toBe('nothing');
  await vi.waitUntil(() => endedCall!.stream.destroyed);
});

test.each([
  ['written data', 'write'],
  ['the end of its data', 'end'],
] as const)(
  "ends the client's stream if the server ends it without a status, even if %s is not read",
  async (_, method) => {
    const server = createServer({ settings: { initialWindowSize: 1_000 } });
    server.on('stream', (stream) => {
      stream.on('error', () => {});
      stream.once('data', () => stream.close(constants.NGHTTP2_NO_ERROR));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    cleanups.push(() => server.close());
    const connection = await GrpcConnection.open({
      address: { host: '127.0.0.1', port: (server.address() as AddressInfo).port },
    });
    cleanups.push(() => connection.close());
    const stream = connection.start('/a/b', {});
    stream.resume();
    const { promise, resolve } = Promise.withResolvers<GrpcError | undefined>();
    onCallEnd(stream, connection, resolve);
    stream[method](Buffer.alloc(100_000));
    expect(await promise).toMatchObject({ code: 'UNAVAILABLE' });
  },
);
