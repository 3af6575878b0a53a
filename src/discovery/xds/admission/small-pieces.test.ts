import { createRequire } from 'node:module';
import fc from 'fast-check';
import { test as base, expect } from 'vitest';
import { clusterType } from '../../../../machines/discovery/xds/ads-types.ts';
import { type GiveServer, givenNode, giveServers } from '../../../../test/fixtures/given-server.ts';
import { collectGarbage } from '../../../../test/harness/collect-garbage.ts';
import { joinSmallPieces } from './small-pieces.ts';

const test = base.extend<{ start: GiveServer }>({ start: ({ task: _ }, use) => giveServers(use) });

interface Decoder {
  write(data: Buffer): Buffer[];
  readPartialMessage: Buffer[];
}
const require = createRequire(import.meta.url);
const { StreamDecoder } = require('@grpc/grpc-js/build/src/stream-decoder.js') as {
  StreamDecoder: new (maxBytes: number) => Decoder;
};

function frameOf(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function joining(): Decoder {
  const decoder = new StreamDecoder(-1);
  joinSmallPieces(decoder);
  return decoder;
}

test('joining small pieces yields the same messages however the messages are split', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 3_000 }), { maxLength: 4 }),
      fc.array(fc.integer({ min: 1, max: 2_000 }), { minLength: 1, maxLength: 5 }),
      (messages, lengths) => {
        const [bytes, decoder] = [Buffer.concat(messages.map(frameOf)), joining()];
        const read: Buffer[] = [];
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const length = lengths[i % lengths.length]!;
          read.push(...decoder.write(bytes.subarray(at, at + length)));
          at += length;
        }
        expect(read).toEqual(messages.map(frameOf));
      },
    ),
  );
});

test('joining small pieces limits the memory for a message that is received byte by byte', async () => {
  const retainedBytes = async (): Promise<number> => {
    await collectGarbage();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const decoder = joining();
  decoder.write(frameOf(Buffer.alloc(400_000)).subarray(0, 5));
  const heldBefore = await retainedBytes();
  for (let i = 0; i < 300_000; i++) decoder.write(Buffer.allocUnsafe(1));
  expect((await retainedBytes()) - heldBefore).toBeLessThan(3_000_000);
  expect(decoder.readPartialMessage.length).toBeLessThan(100);
});

test('the xDS server joins small pieces of a message on every gRPC stream', async ({ start }) => {
  const originalWrite = StreamDecoder.prototype.write;
  const joins = new Map<Decoder, boolean>();
  StreamDecoder.prototype.write = function write(this: Decoder, data: Buffer) {
    joins.set(this, Object.hasOwn(this, 'write'));
    return originalWrite.call(this, data);
  };
  try {
    const { client } = await start();
    const subscribe = async (of: ReturnType<typeof client>): Promise<void> => {
      const stream = of.sotw();
      stream.send({ node: givenNode, typeUrl: clusterType });
      await stream.next();
    };
    const one = client();
    // Two calls use one connection, the third another one.
    for (const of of [one, one, client()]) await subscribe(of);
    // Decoders of the server and of the client.
    expect([...joins.values()].sort()).toEqual([false, false, false, true, true, true]);
  } finally {
    StreamDecoder.prototype.write = originalWrite;
  }
});
