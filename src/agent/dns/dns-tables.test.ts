import { create, toBinary } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { NameTableSchema } from '../../gen/istio/networking/nds/v1/nds_pb.ts';
import { DnsTables } from './dns-tables.ts';

function table(hosts: Record<string, string[]>): Uint8Array {
  const infos = Object.entries(hosts).map(([host, ips]) => [host, { ips, registry: 'External' }] as const);
  return toBinary(NameTableSchema, create(NameTableSchema, { table: Object.fromEntries(infos) }));
}

const workload = { namespace: 'ns1', domain: 'ns1.svc.cluster.local', search: '' };

test.each([
  ['many hosts', Object.fromEntries(Array.from({ length: 40_000 }, (_, i) => [`host-${i}.test`, ['10.1.2.3']]))],
  ['a host with many addresses', { 'one.test': Array.from({ length: 60_000 }, (_, i) => `10.1.${i >> 8}.${i & 255}`) }],
])('decodes a table with %s in slices, so that other work continues', async (_, hosts) => {
  const tables = new DnsTables(workload);
  const bytes = table(hosts);
  let isOver = false;
  const taking = tables.load(bytes).then(() => {
    isOver = true;
  });
  let turnCount = 0;
  const count = (): void => {
    turnCount++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await taking;
  expect(turnCount).toBeGreaterThan(2);
  expect(tables.names?.size).toBe(Object.keys(hosts).length);
});

test('keeps the last of several concurrent tables, and ignores an invalid table', async () => {
  const tables = new DnsTables(workload);
  const sizes: (readonly string[])[] = [];
  const stop = tables.subscribe((names) => sizes.push([...names.entries()].map(([name]) => name)));
  const manyHosts = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`host-${i}.test`, ['10.1.2.3']]));
  const first = tables.load(table({ ...manyHosts, 'old.test': ['1.1.1.1'] }));
  const brokenTable = tables.load(Uint8Array.of(0x0a, 0x7f));
  await Promise.all([first, expect(brokenTable).rejects.toThrow(), tables.load(table({ 'new.test': ['2.2.2.2'] }))]);
  stop();
  expect(sizes.map((names) => names.length)).toEqual([5_001, 1]);
  expect([...tables.names!.entries()]).toEqual([['new.test.', ['2.2.2.2']]]);
});
