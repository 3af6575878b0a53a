import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NameTableSchema } from '../../gen/istio/networking/nds/v1/nds_pb.ts';
import { runToEnd } from '../turns.ts';
import { readNameTableInSteps } from './name-table.ts';

const text = fc.string({ unit: 'grapheme', maxLength: 20 });
const info = fc.record({
  ips: fc.array(text, { maxLength: 4 }),
  registry: text,
  shortname: text,
  namespace: text,
  altHosts: fc.array(text, { maxLength: 4 }),
});

test('a table is decoded as by generated code for any names (agent §9)', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.oneof(text, fc.constantFrom('__proto__', 'constructor', '')), info), (table) => {
      const read = runToEnd(readNameTableInSteps(toBinary(NameTableSchema, create(NameTableSchema, { table }))));
      expect(read).toEqual(new Map(Object.entries(table)));
    }),
  );
});

test('a truncated table is rejected if generated code rejects it (agent §9)', () => {
  const table = {
    'a.b': { ips: ['10.0.0.1', '::1'], registry: 'Kubernetes', altHosts: ['c'] },
    'd.e': { ips: ['::2'] },
  };
  const wholeTable = toBinary(NameTableSchema, create(NameTableSchema, { table }));
  const hosts = (read: () => Iterable<string>): readonly string[] | 'refused' => {
    try {
      return [...read()];
    } catch {
      return 'refused';
    }
  };
  const lengths = Array.from({ length: wholeTable.length + 1 }, (_, length) => wholeTable.subarray(0, length));
  const decodedHosts = lengths.map((bytes) => hosts(() => runToEnd(readNameTableInSteps(bytes)).keys()));
  expect(decodedHosts).toEqual(
    lengths.map((bytes) => hosts(() => Object.keys(fromBinary(NameTableSchema, bytes).table))),
  );
  expect(new Set(decodedHosts.map(String))).toEqual(new Set(['', 'refused', 'a.b', 'a.b,d.e']));
});
