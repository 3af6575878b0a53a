import { create, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { DeltaRequest } from '../../../../machines/discovery/xds/ads-protocol.ts';
import { DeltaDiscoveryRequestSchema } from '../../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import { RequestReader } from './ads-request.ts';
import { RequestNameLists } from './request-names.ts';

const encoded = (initialResourceVersions: Record<string, string>): Uint8Array =>
  toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { typeUrl: 't', initialResourceVersions }));

const read = (lists: RequestNameLists, versions: Record<string, string>): DeltaRequest =>
  new RequestReader(lists, 1_000_000).readDelta(encoded(versions)).request as DeltaRequest;

const reversed = (versions: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(versions).reverse());

describe('resources of an earlier stream', () => {
  const versions = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`outbound|80||s-${i}.shop`, `v${i % 7}`]));

  test('are stored in one list that all clients with the same resources share, in any order', () => {
    const lists = new RequestNameLists();
    const one = read(lists, versions);
    const other = read(lists, reversed(versions));
    expect(other.known).toBe(one.known);
    expect(other.knownVersions).toBe(one.knownVersions);
  });

  test('share their names with clients that have other versions', () => {
    const lists = new RequestNameLists();
    const one = read(lists, versions);
    const other = read(lists, { ...versions, 'outbound|80||s-9.shop': 'new' });
    expect(other.known).toBe(one.known);
    expect(other.knownVersions.filter((version, i) => version !== one.knownVersions[i])).toEqual(['new']);
  });

  test('are read correctly after arbitrary lists of other clients', () => {
    const name = fc.constantFrom('a', 'b', 'ÿ', '', 'a'.repeat(600));
    const reports = fc.dictionary(name, fc.constantFrom('', '1', '2', 'ü'), { noNullPrototype: true });
    fc.assert(
      fc.property(fc.array(reports), (sent) => {
        const lists = new RequestNameLists();
        for (const report of sent) {
          const { known, knownVersions } = read(lists, report);
          expect(Object.fromEntries(known.map((key, i) => [key, knownVersions[i]]))).toEqual(report);
          expect(known).toEqual(Object.keys(report).sort());
        }
      }),
    );
  });

  test('have the last version if a client repeats a name', () => {
    const repeated = Buffer.concat([encoded({ a: '1' }), encoded({ a: '2' })]);
    const { request } = new RequestReader(new RequestNameLists(), 10).readDelta(repeated);
    expect(request).toMatchObject({ known: ['a'], knownVersions: ['2'] });
  });

  test('are rejected if an entry is truncated, even after the same client sent it completely', () => {
    const lists = new RequestNameLists();
    read(lists, { a: '1' });
    // Field 5 with an entry whose name is longer than the entry.
    const truncated = Buffer.from([0x2a, 3, 0x0a, 5, 0x61]);
    for (let i = 0; i < 2; i++) expect(() => new RequestReader(lists, 10).readDelta(truncated)).toThrow();
  });
});
