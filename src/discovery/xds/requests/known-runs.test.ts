import { createRequire } from 'node:module';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { endpointType, routeType } from '../../../../machines/discovery/xds/ads-types.ts';
import { DiscoveryRequestSchema } from '../../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import { packageRoot } from '../../../runtime/package-root.ts';
import { type ReadRequest, RequestReader } from './ads-request.ts';
import { KnownRuns, type MessageDecoder, omittedFrom } from './known-runs.ts';
import { RequestNameLists } from './request-names.ts';

/** Decoder of grpc-js, which KnownRuns wraps. */
const { StreamDecoder } = createRequire(import.meta.url)(
  join(packageRoot(), 'node_modules/@grpc/grpc-js/build/src/stream-decoder.js'),
) as { StreamDecoder: new (mostBytes: number) => MessageDecoder & { readState: number } };

const names = Array.from({ length: 1_000 }, (_, i) => `outbound|80||service-${i}.example.com`);
const lists: Readonly<Record<string, readonly string[]>> = {
  all: names,
  'all but the first': names.slice(1),
  'all but the last': names.slice(0, -1),
  'one more': [...names, 'outbound|80||one-more.example.com'],
  'another in the middle': names.with(500, names[500]!.replace('service', 'SERVICE')),
  half: names.slice(0, 500),
  few: names.slice(0, 3),
  none: [],
};

interface SentRequest {
  readonly list: string;
  readonly typeUrl: string;
  readonly versionInfo: string;
  readonly responseNonce: string;
  readonly errorDetail?: { readonly message: string };
  readonly node?: { readonly id: string };
}

const sentRequest: fc.Arbitrary<SentRequest> = fc.record(
  {
    list: fc.constantFrom('all', 'all', 'all', ...Object.keys(lists)),
    typeUrl: fc.constantFrom(endpointType, endpointType, routeType),
    versionInfo: fc.constantFrom('', '2026/1', 'x'.repeat(300)),
    responseNonce: fc.string({ maxLength: 40 }),
    errorDetail: fc.record({ message: fc.constantFrom('no', 'x'.repeat(5_000)) }),
    node: fc.record({ id: fc.constantFrom('n', 'x'.repeat(20_000)) }),
  },
  { requiredKeys: ['list', 'typeUrl', 'versionInfo', 'responseNonce'] },
);

function encodeRequest({ list, ...request }: SentRequest): Buffer {
  return Buffer.from(
    toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { ...request, resourceNames: [...lists[list]!] })),
  );
}

function framed(message: Buffer): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** @returns requests read from these pieces, and how many omit their names */
function readInPieces(chunks: readonly Buffer[]): { requests: ReadRequest[]; omitted: number } {
  const reader = new RequestReader(new RequestNameLists(), 1_000_000);
  const grpcDecoder = new StreamDecoder(4 * 1024 * 1024);
  const decoder = new KnownRuns(
    grpcDecoder,
    () => reader.lastLists,
    () => grpcDecoder.readState === 0,
  );
  const requests: ReadRequest[] = [];
  let omittedCount = 0;
  for (const chunk of chunks) {
    for (const message of decoder.write(chunk)) {
      const bytes = message.subarray(5);
      if (omittedFrom(bytes) !== undefined) omittedCount++;
      requests.push(reader.readSotw(bytes));
    }
  }
  return { requests, omitted: omittedCount };
}

function cutInto(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length]!;
    // Copied, because the memory may be reused.
    chunks.push(Buffer.from(bytes.subarray(at, at + size)));
    at += size;
  }
  return chunks;
}

test('KnownRuns yields the same requests however these are split', () => {
  let omittedCount = 0;
  fc.assert(
    fc.property(
      fc.array(sentRequest, { minLength: 1, maxLength: 6 }),
      fc.array(fc.oneof(fc.constant(16_384), fc.integer({ min: 1, max: 40_000 })), { minLength: 1, maxLength: 5 }),
      // Whether all messages are joined. Usually, each message begins a new HTTP/2 frame.
      fc.boolean(),
      (conversation, sizes, isJoined) => {
        const messages = conversation.map(encodeRequest);
        const reader = new RequestReader(new RequestNameLists(), 1_000_000);
        const expected = messages.map((message) => reader.readSotw(message));
        const frames = isJoined ? [Buffer.concat(messages.map(framed))] : messages.map(framed);
        const read = readInPieces(frames.flatMap((bytes) => cutInto(bytes, sizes)));
        expect(read.requests).toEqual(expected);
        omittedCount += read.omitted;
      },
    ),
    { numRuns: 300 },
  );
  expect(omittedCount).toBeGreaterThan(5);
});

test('KnownRuns omits the names of an ACK that repeats 1,000 names', () => {
  const acknowledgement = (responseNonce: string): Buffer =>
    framed(encodeRequest({ list: 'all', typeUrl: endpointType, versionInfo: '1', responseNonce }));
  // The first request subscribes to new names.
  const chunks = ['', 'a', 'b'].flatMap((nonce) => cutInto(acknowledgement(nonce), [16_384]));
  const { requests, omitted } = readInPieces(chunks);
  expect(requests.map(({ request }) => request.nonce)).toEqual(['', 'a', 'b']);
  expect(omitted).toBe(2);
});

test('KnownRuns detects that a list extends a known one, and recognizes the new list when it is repeated', () => {
  const piecesOf = (list: string): Buffer[] =>
    cutInto(framed(encodeRequest({ list, typeUrl: endpointType, versionInfo: '', responseNonce: '' })), [16_384]);
  const { requests, omitted } = readInPieces(['all', 'one more', 'one more'].flatMap(piecesOf));
  expect(requests.map(({ request }) => request.protocol === 'sotw' && request.names.length)).toEqual([
    1_000, 1_001, 1_001,
  ]);
  expect(omitted).toBe(1);
});

test('KnownRuns passes truncated lists, compressed messages and invalid bytes to the decoder', () => {
  const first = framed(encodeRequest({ list: 'all', typeUrl: endpointType, versionInfo: '', responseNonce: '' }));
  const compressed = Buffer.from(first);
  compressed[0] = 1;
  const number = Buffer.concat([Buffer.from([0, 0, 0, 0x40, 0]), Buffer.alloc(0x4000, 0x08)]);
  const reader = new RequestReader(new RequestNameLists(), 1_000_000);
  reader.readSotw(first.subarray(5));
  for (const bytes of [compressed, number]) {
    const grpcDecoder = new StreamDecoder(4 * 1024 * 1024);
    const decoder = new KnownRuns(
      grpcDecoder,
      () => reader.lastLists,
      () => grpcDecoder.readState === 0,
    );
    expect(decoder.write(bytes)).toEqual(new StreamDecoder(-1).write(bytes));
  }
});
