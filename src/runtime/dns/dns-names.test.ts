/** Search domains and names: namespace ns1, domain and search ns1.svc.cluster.local. */
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { describe, expect, test } from 'vitest';
import { type NameTable_NameInfoSchema, NameTableSchema } from '../../gen/istio/networking/nds/v1/nds_pb.ts';
import { runToEnd } from '../turns.ts';
import { DnsNames, type WorkloadNames } from './dns-names.ts';
import { readNameTableInSteps } from './name-table.ts';

type Host = MessageInitShape<typeof NameTable_NameInfoSchema>;

const workload: WorkloadNames = {
  namespace: 'ns1',
  domain: 'ns1.svc.cluster.local',
  search: 'ns1.svc.cluster.local',
};
const kubernetes = (shortname: string, namespace: string, ...ips: string[]): Host => ({
  registry: 'Kubernetes',
  shortname,
  namespace,
  ips,
});
const external = (...ips: string[]): Host => ({ registry: 'External', ips });

const table: Record<string, Host> = {
  'www.google.com': external('1.1.1.1'),
  'productpage.ns1.svc.cluster.local': kubernetes('productpage', 'ns1', '9.9.9.9'),
  'example.ns2.svc.cluster.local': kubernetes('example', 'ns2', '10.10.10.10'),
  'details.ns2.svc.cluster.remote': kubernetes('details', 'ns2', '11.11.11.11'),
  'svc-with-alt.ns1.svc.cluster.local': {
    ...kubernetes('svc-with-alt', 'ns1', '15.15.15.15'),
    altHosts: ['svc-with-alt.ns1.svc.clusterset.local', 'svc-with-alt.ns1.svc.mesh.com'],
  },
  '*.wildcard': external('10.10.10.10'),
  '*.b.wildcard': external('11.11.11.11'),
  'dual.localhost': external('2.2.2.2', '2001:db8::68'),
  'empty.test': external('10.0.0.0/8', 'host', ''),
  'Upper.Case': external('3.3.3.3'),
};

function names(hosts: Record<string, Host> = table, client: WorkloadNames = workload): DnsNames {
  return runToEnd(
    DnsNames.of(
      runToEnd(readNameTableInSteps(toBinary(NameTableSchema, create(NameTableSchema, { table: hosts })))),
      client,
    ),
  );
}

/** `alias → address, …`; `none` for an unknown name. */
function lookup(name: string, dnsNames = names()): string {
  const addresses = dnsNames.find(name);
  if (addresses === undefined) return 'none';
  const v4 = addresses.addresses.A.map((address) => [...address.subarray(2)].join('.'));
  const v6 = addresses.addresses.AAAA.map((address) => address.subarray(2).toString('hex'));
  return [...(addresses.alias === undefined ? [] : [`${addresses.alias} →`]), ...v4, ...v6].join(' ');
}

describe('DNS table (agent §9)', () => {
  test.each([
    ['www.google.com.', '1.1.1.1'],
    ['www.google.com.ns1.svc.cluster.local.', 'www.google.com. → 1.1.1.1'],
    ['productpage.', '9.9.9.9'],
    ['productpage.ns1.', '9.9.9.9'],
    ['productpage.ns1.svc.', '9.9.9.9'],
    ['productpage.ns1.svc.cluster.local.', '9.9.9.9'],
    ['productpage.ns1.ns1.svc.cluster.local.', 'productpage.ns1. → 9.9.9.9'],
    ['productpage.ns1.svc.cluster.local.ns1.svc.cluster.local.', 'none'],
    ['example.ns2.', '10.10.10.10'],
    ['example.ns2.svc.', '10.10.10.10'],
    ['example.ns2.svc.cluster.local.', '10.10.10.10'],
    ['example.', 'none'],
    ['details.ns2.svc.cluster.remote.', '11.11.11.11'],
    ['details.ns2.', 'none'],
    ['details.ns2.svc.', 'none'],
    ['svc-with-alt.ns1.svc.clusterset.local.', '15.15.15.15'],
    ['svc-with-alt.ns1.svc.mesh.com.', '15.15.15.15'],
    ['svc-with-alt.', '15.15.15.15'],
    ['foo.wildcard.', '10.10.10.10'],
    ['x.foo.wildcard.', '10.10.10.10'],
    ['a.b.wildcard.', '11.11.11.11'],
    ['wildcard.', 'none'],
    ['foo.wildcard.ns1.svc.cluster.local.', '*.wildcard. → 10.10.10.10'],
    ['a.b.wildcard.ns1.svc.cluster.local.', '*.b.wildcard. → 11.11.11.11'],
    ['dual.localhost.', '2.2.2.2 20010db8000000000000000000000068'],
    ['upper.case.', '3.3.3.3'],
    ['empty.test.', 'none'],
    ['.', 'none'],
    ['ns1.svc.cluster.local.', 'none'],
  ])('resolves %s to %s', (name, expected) => {
    expect(lookup(name)).toBe(expected);
  });
});

test('hosts without a valid address or with a name that cannot be queried are skipped and counted (agent §9)', () => {
  const knownNames = names({
    a: external(''),
    [`${'x'.repeat(64)}.com`]: external('1.1.1.1'),
    [Array.from({ length: 50 }, () => 'label').join('.')]: external('1.1.1.1'),
    'a..b': external('1.1.1.1'),
    '': external('1.1.1.1'),
    good: external('1.1.1.1'),
  });
  expect(knownNames.skipped).toBe(5);
  expect(knownNames.size).toBe(1);
});

test('names of object properties are ordinary names (agent §9)', () => {
  expect(lookup('constructor.')).toBe('none');
  expect(
    lookup('__proto__.', names(JSON.parse('{"__proto__": {"registry": "External", "ips": ["1.1.1.1"]}}'))),
  ).toMatch(/none|1\.1\.1\.1/);
});

test('a proxy has a name table even if its domain differs from its namespace or it has no search domain (agent §9)', () => {
  const vm = { namespace: 'vm', domain: 'svc.cluster.local', search: '' };
  expect(lookup('example.ns2.', names(table, vm))).toBe('10.10.10.10');
  expect(lookup('productpage.', names(table, vm))).toBe('none');
  expect(lookup('www.google.com.ns1.svc.cluster.local.', names(table, vm))).toBe('none');
  expect(lookup('example.ns2.', names(table, { namespace: '', domain: '', search: '' }))).toBe('none');
});

test('hosts with the same name share their addresses without duplicates (agent §9)', () => {
  const knownNames = names({ 'a.b': external('1.1.1.1', '1.1.1.1'), 'A.b': external('1.1.1.1', '::1') });
  expect(lookup('a.b.', knownNames)).toBe(`1.1.1.1 ${'0'.repeat(31)}1`);
});
