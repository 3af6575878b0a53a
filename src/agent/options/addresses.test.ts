import type { NetworkInterfaceInfo } from 'node:os';
import { expect, test } from 'vitest';
import { awaitAddresses, localAddresses, proxyAddresses } from './addresses.ts';

function at(address: string, internal = false): NetworkInterfaceInfo {
  return {
    address,
    internal,
    family: address.includes(':') ? 'IPv6' : 'IPv4',
    netmask: '',
    mac: '',
    cidr: null,
  } as NetworkInterfaceInfo;
}

test('lists the instance address first, without duplicates', () => {
  const interfaces = { eth0: [at('10.0.0.7'), at('10.0.0.8')] };
  expect(proxyAddresses('10.0.0.8', '', interfaces)).toEqual(['10.0.0.8', '10.0.0.7']);
});

test('ignores an invalid instance address', () => {
  expect(proxyAddresses('web-0', '', { eth0: [at('10.0.0.7')] })).toEqual(['10.0.0.7']);
});

test('omits loopback and link-local addresses', () => {
  const interfaces = { lo: [at('127.0.0.1', true)], eth0: [at('fe80::1'), at('169.254.1.1'), at('10.0.0.7')] };
  expect(proxyAddresses(undefined, '', interfaces)).toEqual(['10.0.0.7']);
});

test('lists loopback addresses if the host has no other addresses', () => {
  expect(proxyAddresses(undefined, '', { lo: [at('127.0.0.1', true)] })).toEqual(['127.0.0.1', '::1']);
});

test('prefers IPv6 only if all addresses are IPv6', () => {
  expect(localAddresses(['2001:db8::1'])).toEqual({ localhost: '::1', wildcard: '::', ipVersion: 'v6' });
  expect(localAddresses(['2001:db8::1', '10.0.0.7']).ipVersion).toBe('v4');
});

test('omits interfaces that an annotation excludes (agent §1.4)', () => {
  const interfaces = { eth0: [at('10.0.0.7')], net1: [at('10.9.0.7')], net2: [at('10.8.0.7')] };
  expect(proxyAddresses(undefined, 'net1, net2', interfaces)).toEqual(['10.0.0.7']);
});

test('waits until an interface has an address, and warns if it gets none (agent §1.4)', async () => {
  let reads = 0;
  const lateInterfaces = () => ({ eth0: [at(++reads < 3 ? '0.0.0.0' : '10.0.0.1')] });
  expect(await awaitAddresses(lateInterfaces, 10_000)).toBeUndefined();
  expect(reads).toBe(3);
  const unusableInterfaces = () => ({ eth0: [at('10.0.0.1'), at('::')], eth1: undefined });
  expect(await awaitAddresses(unusableInterfaces, 0)).toEqual({
    event: 'option.addressMissing',
    interfaces: 'eth0',
    waitedMs: 0,
  });
  expect(proxyAddresses(undefined, '', unusableInterfaces())).toEqual(['10.0.0.1']);
});
