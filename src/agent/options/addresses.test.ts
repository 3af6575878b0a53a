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

test('the instance address comes first, and addresses are unique', () => {
  const interfaces = { eth0: [at('10.0.0.7'), at('10.0.0.8')] };
  expect(proxyAddresses('10.0.0.8', '', interfaces)).toEqual(['10.0.0.8', '10.0.0.7']);
});

test('an invalid instance address is ignored', () => {
  expect(proxyAddresses('web-0', '', { eth0: [at('10.0.0.7')] })).toEqual(['10.0.0.7']);
});

test('loopback and link-local addresses are left out', () => {
  const interfaces = { lo: [at('127.0.0.1', true)], eth0: [at('fe80::1'), at('169.254.1.1'), at('10.0.0.7')] };
  expect(proxyAddresses(undefined, '', interfaces)).toEqual(['10.0.0.7']);
});

test('a host without other addresses has its loopback addresses', () => {
  expect(proxyAddresses(undefined, '', { lo: [at('127.0.0.1', true)] })).toEqual(['127.0.0.1', '::1']);
});

test('the proxy uses IPv6 only if all its addresses are IPv6', () => {
  expect(localAddresses(['2001:db8::1'])).toEqual({ localhost: '::1', wildcard: '::', ipVersion: 'v6' });
  expect(localAddresses(['2001:db8::1', '10.0.0.7']).ipVersion).toBe('v4');
});

test('§1.4 interfaces that an annotation excludes are left out', () => {
  const interfaces = { eth0: [at('10.0.0.7')], net1: [at('10.9.0.7')], net2: [at('10.8.0.7')] };
  expect(proxyAddresses(undefined, 'net1, net2', interfaces)).toEqual(['10.0.0.7']);
});

test('§1.4 the agent waits for an interface without an address, and warns if it does not get one', async () => {
  let reads = 0;
  const later = () => ({ eth0: [at(++reads < 3 ? '0.0.0.0' : '10.0.0.1')] });
  expect(await awaitAddresses(later, 10_000)).toBeUndefined();
  expect(reads).toBe(3);
  const never = () => ({ eth0: [at('10.0.0.1'), at('::')], eth1: undefined });
  expect(await awaitAddresses(never, 0)).toEqual({ event: 'option.addressMissing', interfaces: 'eth0', waitedMs: 0 });
  expect(proxyAddresses(undefined, '', never())).toEqual(['10.0.0.1']);
});
