import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { cpuMs } from '../../../../test/harness/cpu-time.ts';
import { growthOf } from '../../../../test/harness/growth.ts';
import { NodeSchema } from '../../../gen/envoy/config/core/v3/base_pb.ts';
import {
  DeltaDiscoveryRequestSchema,
  DiscoveryRequestSchema,
} from '../../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import { RequestReader, readFirstRequest, readNode } from './ads-request.ts';
import { RequestNameLists } from './request-names.ts';

/** Counts hashes of name lists. Not `vi.mock`, because test files share loaded modules. */
function spyOnHash() {
  const hash = vi.spyOn(crypto, 'hash');
  syncBuiltinESMExports();
  onTestFinished(() => {
    hash.mockRestore();
    syncBuiltinESMExports();
  });
  return hash;
}

const newReader = (): RequestReader => new RequestReader(new RequestNameLists(), 1_000_000);
const sotwBytes = (request: MessageInitShape<typeof DiscoveryRequestSchema>): Uint8Array =>
  toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, request));
const sotw = (request: MessageInitShape<typeof DiscoveryRequestSchema>) => newReader().readSotw(sotwBytes(request));
const delta = (request: MessageInitShape<typeof DeltaDiscoveryRequestSchema>) =>
  newReader().readDelta(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, request)));

describe('RequestReader', () => {
  test('parses a SotW request', () => {
    expect(sotw({ typeUrl: 't', versionInfo: 'v', responseNonce: 'n', resourceNames: ['ÿ', '', 'a'] }).request).toEqual(
      {
        protocol: 'sotw',
        typeUrl: 't',
        nonce: 'n',
        names: ['', 'a', 'ÿ'],
        rejection: null,
        version: 'v',
      },
    );
  });

  test('parses a delta request', () => {
    const request = {
      typeUrl: 't',
      responseNonce: 'n',
      resourceNamesSubscribe: ['a', '*'],
      resourceNamesUnsubscribe: ['b'],
      initialResourceVersions: { d: '', c: '1' },
    };
    expect(delta(request).request).toEqual({
      protocol: 'delta',
      typeUrl: 't',
      nonce: 'n',
      subscribe: ['*', 'a'],
      unsubscribe: ['b'],
      known: ['c', 'd'],
      knownVersions: ['1', ''],
      rejection: null,
    });
  });

  test('treats an error detail without message as a NACK', () => {
    expect(sotw({ errorDetail: { code: 3, message: 'bad' } }).request.rejection).toBe('bad');
    expect(delta({ errorDetail: { code: 3 } }).request.rejection).toBe('');
    expect(delta({}).request.rejection).toBeNull();
  });

  test('skips unused and unknown fields', () => {
    const request = { typeUrl: 't', resourceLocators: [{ name: 'x' }] };
    expect(sotw(request).request).toMatchObject({ typeUrl: 't', names: [] });
    // Unknown fields of each wire type.
    const unknownFields = Buffer.from([
      0xa0, 6, 1, 0xa1, 6, 1, 2, 3, 4, 5, 6, 7, 8, 0xa5, 6, 1, 2, 3, 4, 0x22, 1, 0x74,
    ]);
    expect(newReader().readSotw(unknownFields).request.typeUrl).toBe('t');
  });

  test('throws for bytes that are no request', () => {
    expect(() => newReader().readSotw(Buffer.from([0x22, 200, 1]))).toThrow();
    expect(() => newReader().readDelta(Buffer.from([0x12, 9, 1]))).toThrow();
    expect(() => newReader().readSotw(Buffer.from([0]))).toThrow();
  });

  test('returns the encoded node if the request contains one', () => {
    expect(sotw({}).node).toBeUndefined();
    const node = { id: 'i', cluster: 'c', metadata: { NAMESPACE: 'n' }, locality: { region: 'r', zone: 'z' } };
    expect(readNode(delta({ node }).node!)).toEqual({
      ...node,
      locality: { region: 'r', zone: 'z', subZone: '' },
    });
    expect(readNode(toBinary(NodeSchema, create(NodeSchema)))).toEqual({ id: '', cluster: '', metadata: {} });
  });
});

describe('RequestReader for resource names', () => {
  const deltaBytes = (resourceNamesSubscribe: string[]): Uint8Array =>
    toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { resourceNamesSubscribe }));
  const names = Array.from({ length: 1_000 }, (_, i) => `outbound|80||service-${i}.shop.svc.cluster.local`);

  test('shares one list between all streams, regardless of order and duplicates', () => {
    const lists = new RequestNameLists();
    const one = new RequestReader(lists, 1_000_000).readSotw(sotwBytes({ typeUrl: 't', resourceNames: names }));
    const other = new RequestReader(lists, 1_000_000).readSotw(
      sotwBytes({ typeUrl: 't', resourceNames: [...names, 'x', names[0]!] }),
    );
    const third = new RequestReader(lists, 1_000_000).readSotw(
      sotwBytes({ typeUrl: 't', resourceNames: names.toReversed() }),
    );
    const delta = new RequestReader(lists, 1_000_000).readDelta(deltaBytes(names));
    expect(namesOf(third)).toBe(namesOf(one));
    expect(delta.request).toMatchObject({ subscribe: namesOf(one) });
    expect(namesOf(other)).toEqual([...names, 'x'].sort());
  });

  test("compares names with the stream's previous list instead of hashing or parsing them", () => {
    const reader = newReader();
    const first = reader.readSotw(sotwBytes({ typeUrl: 't', resourceNames: names }));
    reader.readSotw(sotwBytes({ typeUrl: 'other', resourceNames: ['x'] }));
    const bytes = sotwBytes({ typeUrl: 't', versionInfo: 'v', responseNonce: 'n', resourceNames: names });
    const hash = spyOnHash();
    expect(namesOf(reader.readSotw(bytes))).toBe(namesOf(first));
    expect(hash).not.toHaveBeenCalled();
    newReader().readSotw(bytes);
    expect(hash).toHaveBeenCalled();
  });

  test('compares names with recent lists of other streams instead of hashing or parsing them', () => {
    const lists = new RequestNameLists();
    const orders = Array.from({ length: 8 }, (_, from) => [...names.slice(from), ...names.slice(0, from)]);
    const requests = orders.map((subscribedNames) => deltaBytes(subscribedNames));
    for (const bytes of requests) new RequestReader(lists, 1_000_000).readDelta(bytes);
    const hash = spyOnHash();
    for (const bytes of requests.slice(-4)) new RequestReader(lists, 1_000_000).readDelta(bytes);
    expect(hash).not.toHaveBeenCalled();
    new RequestReader(lists, 1_000_000).readDelta(requests[0]!);
    expect(hash).toHaveBeenCalled();
  });

  test('parses names correctly after arbitrary lists of other streams, including truncated ones', () => {
    const longName = (name: string): string => name.padEnd(300, name);
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.array(fc.constantFrom('a', 'b', 'bb').map(longName), { maxLength: 8 }), fc.boolean())),
        (sentLists) => {
          const lists = new RequestNameLists();
          for (const [subscribedNames, isCut] of sentLists) {
            const bytes = deltaBytes(subscribedNames);
            const read = () => new RequestReader(lists, 1_000_000).readDelta(isCut ? bytes.subarray(0, -1) : bytes);
            if (isCut && subscribedNames.length > 0) expect(read).toThrow();
            else if (!isCut) expect(read().request).toMatchObject({ subscribe: [...new Set(subscribedNames)].sort() });
          }
        },
      ),
    );
  });

  test('parses names correctly after arbitrary lists of the same stream', () => {
    fc.assert(
      fc.property(fc.array(fc.array(fc.constantFrom('a', 'b', 'bb', '', '*'))), (sentLists) => {
        const reader = newReader();
        for (const resourceNames of sentLists) {
          const { request } = reader.readSotw(sotwBytes({ typeUrl: 't', resourceNames, responseNonce: 'n' }));
          expect(request).toMatchObject({ names: [...new Set(resourceNames)].sort(), nonce: 'n', typeUrl: 't' });
        }
      }),
    );
  });

  test('finds names in separate places of a message', () => {
    const reader = newReader();
    const [a, b] = ['a', 'b'].map((name) => sotwBytes({ resourceNames: [name] }));
    const type = sotwBytes({ typeUrl: 't' });
    const separatedNames = Buffer.concat([a!, type, b!]);
    expect(reader.readSotw(separatedNames).request).toMatchObject({ typeUrl: 't', names: ['a', 'b'] });
    expect(reader.readSotw(Buffer.concat([b!, type])).request).toMatchObject({ names: ['b'] });
  });

  test('has a linear cost for names in many places of a message', () => {
    const costOf = (nameCount: number): number => {
      const nameField = (field: number, i: number): Buffer =>
        Buffer.concat([Buffer.from([field, 6]), Buffer.from(`${i}`.padStart(6, 'n'))]);
      const alternating = (names: number, other: number[]): Buffer =>
        Buffer.concat(Array.from({ length: nameCount }, (_, i) => [nameField(names, i), Buffer.from(other)]).flat());
      const [sentLists, subscribedLists] = [alternating(0x1a, [0x0a, 0]), alternating(0x1a, [0x22, 1, 0x61])];
      expect(namesOf(newReader().readSotw(sentLists))).toHaveLength(nameCount);
      return cpuMs(() => {
        for (let i = 0; i < 3; i++) [newReader().readSotw(sentLists), newReader().readDelta(subscribedLists)];
      });
    };
    // If each place were joined with all earlier ones, ten times as many places would cost a hundred times as much.
    expect(growthOf(costOf, 800, 8_000)).toBeLessThan(40);
  });

  test('finds names between other fields', () => {
    const field = fc.oneof(
      fc.constantFrom('a', 'b', 'cc', '').map((name) => ({ resourceNames: [name, `${name}x`] })),
      fc.constantFrom({ versionInfo: 'v' }, { typeUrl: 't' }, { responseNonce: 'n' }),
    );
    fc.assert(
      fc.property(fc.array(field), (fields) => {
        const sentLists = fields.flatMap((one) => ('resourceNames' in one ? one.resourceNames : []));
        const { request } = newReader().readSotw(Buffer.concat(fields.map(sotwBytes)));
        expect(request).toMatchObject({ names: [...new Set(sentLists)].sort() });
      }),
    );
  });

  test('stops reading names above the limit of a stream', () => {
    const of = (...resourceNames: string[]): Uint8Array => sotwBytes({ resourceNames });
    const reader = (): RequestReader => new RequestReader(new RequestNameLists(), 3);
    expect(namesOf(reader().readSotw(of('a', 'b', 'c')))).toEqual(['a', 'b', 'c']);
    expect(reader().readSotw(of('a', 'b', 'c')).exceedsNames).toBe(false);
    const node = { id: 'i' };
    const four = ['a', 'b', 'c', 'd'];
    const type = sotwBytes({ typeUrl: 't' });
    for (const bytes of [of(...four), Buffer.concat([of('a', 'b'), type, of('c', 'd')])]) {
      const read = reader().readSotw(Buffer.concat([sotwBytes({ node }), bytes]));
      expect([read.exceedsNames, namesOf(read), readNode(read.node!).id]).toEqual([true, [], 'i']);
    }
    for (const request of [
      { resourceNamesSubscribe: four },
      { resourceNamesUnsubscribe: four },
      { initialResourceVersions: Object.fromEntries(four.map((name) => [name, '1'])) },
    ]) {
      const bytes = toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { node, ...request }));
      const { exceedsNames, request: read, node: encodedNode } = reader().readDelta(bytes);
      expect([exceedsNames, readNode(encodedNode!).id]).toEqual([true, 'i']);
      expect(read).toMatchObject({ subscribe: [], unsubscribe: [], known: [] });
      expect(newReader().readDelta(bytes).exceedsNames).toBe(false);
    }
  });

  test('throws for truncated names', () => {
    const bytes = sotwBytes({ resourceNames: ['a', 'bcd'] });
    for (let length = 4; length < bytes.length; length++) {
      expect(() => newReader().readSotw(bytes.subarray(0, length))).toThrow();
    }
  });
});

function namesOf({ request }: ReturnType<RequestReader['readSotw']>): readonly string[] {
  return request.protocol === 'sotw' ? request.names : [];
}

describe('readFirstRequest', () => {
  const node = { id: 'sidecar~10.0.0.1~a.b~b.svc', cluster: 'a', metadata: { large: 'x'.repeat(10_000) } };

  test('returns the node ID in both protocols, regardless of other fields', () => {
    expect(readFirstRequest(sotwBytes({ node, versionInfo: 'v', resourceNames: ['a'], typeUrl: 't' }), false)).toEqual({
      ...{ nodeId: node.id, isReturning: true },
    });
    const request = create(DeltaDiscoveryRequestSchema, { node, typeUrl: 't', resourceNamesSubscribe: ['a'] });
    expect(readFirstRequest(toBinary(DeltaDiscoveryRequestSchema, request), true)).toEqual({
      ...{ nodeId: node.id, isReturning: false },
    });
  });

  test.each([
    ['delta without versions', {}, false],
    ['delta with versions', { initialResourceVersions: { a: '1' } }, true],
    ['delta with versions behind names', { resourceNamesSubscribe: ['*'], initialResourceVersions: { a: '1' } }, true],
  ])('detects whether the client has configuration: %s', (_, request, isReturning) => {
    const bytes = toBinary(
      DeltaDiscoveryRequestSchema,
      create(DeltaDiscoveryRequestSchema, { typeUrl: 't', ...request }),
    );
    expect(readFirstRequest(bytes, true)).toEqual({ nodeId: undefined, isReturning });
  });

  test('detects whether a SotW client has configuration', () => {
    for (const [versionInfo, isReturning] of [
      ['v', true],
      ['', false],
    ] as const) {
      expect(readFirstRequest(sotwBytes({ node, versionInfo, typeUrl: 't' }), false).isReturning).toBe(isReturning);
    }
  });

  test('returns no node ID if it is missing or too long', () => {
    expect(readFirstRequest(sotwBytes({ typeUrl: 't' }), false).nodeId).toBeUndefined();
    expect(readFirstRequest(sotwBytes({ node: { cluster: 'a' } }), false).nodeId).toBeUndefined();
    expect(readFirstRequest(sotwBytes({ node: { id: 'x'.repeat(1_025) } }), false).nodeId).toBeUndefined();
  });

  test('reads only the start of a message, to limit the cost of arbitrary bytes', () => {
    fc.assert(fc.property(fc.uint8Array(), fc.boolean(), (bytes, isDelta) => void readFirstRequest(bytes, isDelta)));
    const names = sotwBytes({ resourceNames: Array.from({ length: 500_000 }, () => '') });
    expect(cpuMs(() => void readFirstRequest(names, true))).toBeLessThan(50);
  });
});
