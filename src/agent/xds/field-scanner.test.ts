import { create, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  DeltaDiscoveryResponseSchema,
  DiscoveryResponseSchema,
} from '../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import { FieldScanner } from './field-scanner.ts';

const fields = new Set([4, 5]);

function scanned(message: Uint8Array, cuts: readonly number[] = []): Record<string, string> {
  const scanner = new FieldScanner(fields);
  const offsets = [0, ...cuts.map((cutOffset) => cutOffset % (message.length + 1)), message.length].sort(
    (a, b) => a - b,
  );
  for (const [i, offset] of offsets.entries())
    scanner.push(Buffer.from(message.subarray(offset, offsets[i + 1] ?? offset)));
  return Object.fromEntries(scanner.foundFields);
}

test('reads type and nonce of a response regardless of chunk boundaries', () => {
  const resource = fc.record({ typeUrl: fc.string(), value: fc.uint8Array({ maxLength: 400 }) });
  fc.assert(
    fc.property(
      fc.boolean(),
      fc.string(),
      fc.string(),
      fc.array(resource),
      fc.array(fc.nat(10_000)),
      (isDelta, typeUrl, nonce, resources, cuts) => {
        const message = isDelta
          ? toBinary(
              DeltaDiscoveryResponseSchema,
              create(DeltaDiscoveryResponseSchema, {
                typeUrl,
                nonce,
                resources: resources.map((encodedResource, i) => ({
                  name: `${i}`,
                  version: 'v',
                  resource: encodedResource,
                })),
                removedResources: ['gone'],
              }),
            )
          : toBinary(
              DiscoveryResponseSchema,
              create(DiscoveryResponseSchema, { typeUrl, nonce, resources, canary: true }),
            );
        expect(scanned(message, cuts)).toEqual({ ...(typeUrl && { 4: typeUrl }), ...(nonce && { 5: nonce }) });
      },
    ),
  );
});

test('skips a field that is too long, and reads later fields', () => {
  const message = create(DiscoveryResponseSchema, { typeUrl: 'x'.repeat(2_000_000), nonce: 'n' });
  expect(scanned(toBinary(DiscoveryResponseSchema, message))).toEqual({ 5: 'n' });
});

test('finds no fields in an invalid message, and does not throw', () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => void scanned(bytes)));
  // A tag without an end, a group, and a length beyond the limit.
  for (const bytes of [Array<number>(20).fill(0xff), [0x23], [0x2a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 65]]) {
    expect(scanned(Uint8Array.from(bytes))).toEqual({});
  }
});
