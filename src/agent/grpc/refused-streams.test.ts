/** What becomes of a stream that one side has left: the server answers nothing, the client hears of an end without a word. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { constants, createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import type { GrpcError } from '../../runtime/grpc/call-status.ts';
import { GrpcConnection, whenEnded } from '../../runtime/grpc/grpc-client.ts';
import { GrpcSocketServer, type ServerCall } from './grpc-server.ts';

const ends: (() => unknown)[] = [];
afterEach(() => {
  for (const end of ends.splice(0).reverse()) end();
});

test('a stream that its client has reset is answered nothing, throws nothing, and is forgotten', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'grpc-'));
  ends.push(() => rmSync(directory, { recursive: true }));
  const { promise, resolve } = Promise.withResolvers<unknown>();
  let answered: ServerCall | undefined;
  const answer = (call: ServerCall) => {
    answered = call;
    try {
      call.write(Buffer.from('more'));
      call.end('INVALID_ARGUMENT', 'no message');
      resolve('nothing');
    } catch (error) {
      resolve(error);
    }
  };
  const server = await GrpcSocketServer.listen(join(directory, 's'), {
    // A reader hears of the reset, as of any end, before the stream is destroyed.
    methods: new Map([['/a/b', (call) => call.stream.once('aborted', () => answer(call))]]),
  });
  ends.push(() => server.close());
  const connection = await GrpcConnection.open({ address: { path: join(directory, 's') } });
  ends.push(() => connection.close());
  const stream = connection.start('/a/b', {});
  stream.on('error', () => {});
  stream.write(Buffer.alloc(1_000), () => stream.close(constants.NGHTTP2_CANCEL));
  expect(await promise).toBe('nothing');
  await vi.waitUntil(() => answered!.stream.destroyed);
});

test.each([
  ['what was said', 'write'],
  ['the last word', 'end'],
] as const)(
  'a stream that the server leaves without a word has ended, also when nobody has read %s',
  async (_, say) => {
    const server = createServer({ settings: { initialWindowSize: 1_000 } });
    server.on('stream', (stream) => {
      stream.on('error', () => {});
      stream.once('data', () => stream.close(constants.NGHTTP2_NO_ERROR));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ends.push(() => server.close());
    const connection = await GrpcConnection.open({
      address: { host: '127.0.0.1', port: (server.address() as AddressInfo).port },
    });
    ends.push(() => connection.close());
    const stream = connection.start('/a/b', {});
    stream.resume();
    const { promise, resolve } = Promise.withResolvers<GrpcError | undefined>();
    whenEnded(stream, connection, resolve);
    stream[say](Buffer.alloc(100_000));
    expect(await promise).toMatchObject({ code: 'UNAVAILABLE' });
  },
);
