/** Tests how responses are written with a real grpc-js server. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  credentials,
  Server,
  ServerCredentials,
  status,
} from '@grpc/grpc-js';
import { test as base, describe, expect, vi } from 'vitest';
import { createAuthority } from '../../../../test/certs/authority.ts';
import { eventuallyHolds } from '../../../../test/harness/eventually.ts';
import { packageRoot } from '../../../runtime/package-root.ts';
import { rawStream } from '../ads-services.ts';
import {
  type AdsCall,
  type AdsTransport,
  copyingTransport,
  isClientDisconnected,
  replaceDecoder,
  transportOf,
} from './ads-transport.ts';

const path = '/test/Stream';

interface World {
  /** Server side of a new stream. */
  openStream(port?: Port): Promise<{ call: AdsCall; client: ClientDuplexStream<Buffer, Buffer>; received: Buffer[] }>;
}

type Port = 'plaintext' | 'TLS';

const test = base.extend<{ world: World }>({
  world: async ({ task: _ }, use) => {
    const calls: AdsCall[] = [];
    const server = new Server({ 'grpc.max_send_message_length': -1 });
    server.addService({ [path]: rawStream(path) }, { [path]: (call: AdsCall) => void calls.push(call) });
    const authority = createAuthority();
    const { certificate, privateKey } = authority.issue(['server.local']);
    const [ca, chain, key] = [authority.certificate, certificate, privateKey].map((pem) => Buffer.from(pem));
    const clientOf = async (
      serverCredentials: ServerCredentials,
      clientCredentials: ChannelCredentials,
    ): Promise<Client> => {
      const port = await new Promise<number>((resolve, reject) => {
        server.bindAsync('127.0.0.1:0', serverCredentials, (error, boundPort) =>
          error === null ? resolve(boundPort) : reject(error),
        );
      });
      return new Client(`127.0.0.1:${port}`, clientCredentials, {
        'grpc.use_local_subchannel_pool': 1,
        'grpc.max_receive_message_length': -1,
        'grpc.ssl_target_name_override': 'server.local',
      });
    };
    const clients: Record<Port, Client> = {
      plaintext: await clientOf(ServerCredentials.createInsecure(), credentials.createInsecure()),
      TLS: await clientOf(
        ServerCredentials.createSsl(null, [{ cert_chain: chain!, private_key: key! }]),
        credentials.createSsl(ca!),
      ),
    };
    const asItIs = (bytes: Buffer): Buffer => bytes;
    await use({
      async openStream(port = 'plaintext') {
        const stream = clients[port].makeBidiStreamRequest(path, asItIs, asItIs);
        const receivedBytes: Buffer[] = [];
        stream.on('data', (bytes: Buffer) => void receivedBytes.push(bytes));
        stream.on('error', () => {});
        stream.write(Buffer.from('x'));
        await eventuallyHolds(() => expect(calls).toHaveLength(1));
        const call = calls.shift()!;
        call.on('data', () => {});
        return { call, client: stream, received: receivedBytes };
      },
    });
    for (const client of Object.values(clients)) client.close();
    server.forceShutdown();
  },
});

const bytes = (length: number, fill: number): Buffer => Buffer.alloc(length, fill);
/** Sizes of own and shared bytes, around the limits for separate writes. */
const sizes: readonly [number, readonly number[]][] = [
  [0, []],
  [10, []],
  [10, [100]],
  [0, [1, 2, 3]],
  [8_000, [192]],
  [8_000, [193]],
  [10, [50_000, 1, 0, 1_000_000]],
  [20_000, []],
  [10, [3]],
  // Results in more than one TLS write, from parts smaller and larger than the limit.
  [10, Array.from({ length: 300 }, (_, i) => i)],
  [8_001, [7_999, 8_000, 8_001, 16_000, 1]],
];

describe.each([
  ['shared frames', 'plaintext', transportOf],
  ['shared frames', 'TLS', transportOf],
  ['copies', 'plaintext', copyingTransport],
] as const)('the transport with %s over %s', (method, port, transportFor: (call: AdsCall) => AdsTransport) => {
  test('sends each response completely and in order, and reports when it is sent', async ({ world }) => {
    const { call, received } = await world.openStream(port);
    const transport = transportFor(call);
    expect(transport.sendMode).toBe(method);
    const flushed = vi.fn();
    const expected = sizes.map(([head, sharedLengths], i) => {
      const chunks = { head: bytes(head, i), trailingChunks: sharedLengths.map((length) => bytes(length, 100 + i)) };
      const wholeResponse = Buffer.concat([chunks.head, ...chunks.trailingChunks]);
      expect(transport.send(chunks, flushed)).toBe(wholeResponse.length);
      return wholeResponse;
    });
    await eventuallyHolds(() => expect(received).toHaveLength(expected.length));
    expect(received.map((one, i) => one.equals(expected[i]!))).toEqual(expected.map(() => true));
    await eventuallyHolds(() => expect(flushed).toHaveBeenCalledTimes(expected.length));
    for (const [error] of flushed.mock.calls) expect(error ?? null).toBeNull();
  });

  test.for([
    ['OK', ''],
    ['UNAVAILABLE', 'elsewhere'],
  ] as const)('ends the stream with %s after all responses', async ([code, details], { world }) => {
    const { call, client, received } = await world.openStream(port);
    const callEnded = new Promise((resolve) => client.on('status', resolve));
    const transport = transportFor(call);
    transport.send({ head: bytes(10, 1), trailingChunks: [bytes(100_000, 2)] }, () => {});
    transport.end(code, details);
    expect(await callEnded).toMatchObject({ code: status[code], ...(code !== 'OK' && { details }) });
    expect(received.map(({ length }) => length)).toEqual([100_010]);
  });

  test('reports an error for a response to a disconnected client', async ({ world }) => {
    const { call, client } = await world.openStream(port);
    const transport = transportFor(call);
    client.pause();
    const flushed = vi.fn();
    transport.send({ head: bytes(10, 1), trailingChunks: [bytes(10_000_000, 2)] }, flushed);
    const cancelled = new Promise((resolve) => call.on('cancelled', resolve));
    client.cancel();
    await cancelled;
    if (method === 'copies') return;
    transport.send({ head: bytes(10, 1), trailingChunks: [] }, flushed);
    await eventuallyHolds(() => expect(flushed).toHaveBeenCalledTimes(2));
    for (const [error] of flushed.mock.calls) expect(isClientDisconnected(error), String(error)).toBe(true);
  });
});

describe('the transport with shared frames', () => {
  test('is used if it finds the private HTTP/2 stream of grpc-js', async ({ world }) => {
    const { call } = await world.openStream();
    expect(transportOf(call).sendMode).toBe('shared frames');
  });

  test('does not copy shared bytes', async ({ world }) => {
    const { call, client } = await world.openStream();
    const transport = transportOf(call);
    client.pause();
    const sharedChunks = [bytes(4_000_000, 1)];
    const bytesBefore = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 50; i++) transport.send({ head: bytes(10, 1), trailingChunks: sharedChunks }, () => {});
    expect(process.memoryUsage().arrayBuffers - bytesBefore).toBeLessThan(20_000_000);
    client.cancel();
  });

  test('writes to TLS connections in small pieces, because Node.js keeps a buffer of the size of the largest write', async ({
    world,
  }) => {
    const { call, received } = await world.openStream('TLS');
    const transport = transportOf(call);
    const { stream } = (call as unknown as { call: { stream: Writable } }).call;
    const write = vi.spyOn(stream, '_write');
    transport.send(
      { head: bytes(10, 1), trailingChunks: [...Array<Buffer>(100).fill(bytes(90, 2)), bytes(991_000, 3)] },
      () => {},
    );
    await eventuallyHolds(() => expect(received.map(({ length }) => length)).toEqual([1_000_010]));
    const sizes = write.mock.calls.map(([chunk]) => (chunk as Buffer).length);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(1_000_015);
    expect(Math.max(...sizes)).toBe(8_000);
    // Small parts are joined.
    expect(sizes.length).toBeLessThan(130);
  });

  test('is not used if there is no such HTTP/2 stream', () => {
    for (const call of [{}, { call: {} }, { call: { stream: { write: () => true } } }, { call: null }]) {
      expect(transportOf(call as unknown as AdsCall).sendMode).toBe('copies');
    }
  });

  test('is compatible with the pinned version of grpc-js', () => {
    const { version } = createRequire(import.meta.url)('@grpc/grpc-js/package.json') as { version: string };
    const manifest = readFileSync(join(packageRoot(), 'package.json'), 'utf8');
    const { devDependencies } = JSON.parse(manifest) as { devDependencies: Record<string, string> };
    // grpc-js is bundled, so installations use this version.
    expect(devDependencies['@grpc/grpc-js']).toBe(version);
  });
});

test('a replaced decoder receives requests before the decoder of grpc-js', async ({ world }) => {
  const { call, client } = await world.openStream();
  const pieceSizes: number[] = [];
  let isDecoderIdle: (() => boolean) | undefined;
  replaceDecoder(call, (head, isIdle) => {
    isDecoderIdle = isIdle;
    return {
      write(data) {
        pieceSizes.push(data.length);
        return head.write(data);
      },
    };
  });
  expect(isDecoderIdle?.()).toBe(true);
  const message = Buffer.alloc(60_000, 1);
  // The first message may have arrived already.
  const read = new Promise<Buffer>((resolve) => call.on('data', (bytes) => bytes.length > 1 && resolve(bytes)));
  client.write(message);
  expect(await read).toEqual(message);
  expect(pieceSizes.reduce((sum, length) => sum + length, 0)).toBeGreaterThan(message.length);
  expect(isDecoderIdle?.()).toBe(true);
});
