import { BlockList } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { embeddedIpv4sOf, specialUseOf } from './special-address.ts';

describe('specialUseOf', () => {
  it.each([
    ...['0.0.0.0', '0.1.2.3', '::', '0:0:0:0:0:0:0:0', '::2'].map((address) => [address, 'unspecified']),
    ...['127.0.0.1', '127.8.8.8', '::1', '0:0::0:1', '::1%lo'].map((address) => [address, 'loopback']),
    ...['169.254.169.254', '169.254.170.2', 'fe80::1', 'FEBF::1', 'fe80::1%eth0'].map((address) => [
      address,
      'link-local',
    ]),
    ...['fec0::1', 'feff::1'].map((address) => [address, 'site-local']),
    ...['224.0.0.1', '239.255.255.250', 'ff02::1'].map((address) => [address, 'multicast']),
    ...['240.0.0.1', '255.255.255.255', '100::1'].map((address) => [address, 'reserved']),
    ...['fd00:ec2::254', 'FD00:0EC2:0::FE', 'fd20:ce::254', 'fd00:c1::a9fe:a9fe', 'fd00:42::42'].map((address) => [
      address,
      'metadata',
    ]),
    ...['100.100.100.200', '168.63.129.16', '192.0.0.192'].map((address) => [address, 'metadata']),
    ...['', 'localhost', '127.1', '0x7f000001', '2130706433', '[::1]', '::1/128', '127.0.0.1 '].map((text) => [
      text,
      'malformed',
    ]),
  ])('classifies %j as %s', (address, use) => expect(specialUseOf(address)).toBe(use));

  it.each([
    ...['10.0.0.1', '192.168.1.1', '100.64.0.1', '8.8.8.8', '126.255.255.255', '128.0.0.1', '169.253.255.255'],
    ...['223.255.255.255', '2001:db8::1', 'fd00::1', 'fd00:ec3::254', 'fe7f::1', '2600::7f00:1', '2001:4860::8888'],
    ...['::ffff:10.0.0.1', '::10.0.0.1', '64:ff9b::808:808', '64:ff9b:1::8.8.8.8', '64:ff9b:1:808:8:800::'],
    ...['2002:808:808::1', '2001:0:808:808:0:0:f7f7:f7f7', '64:ff9b:2::7f00:1'],
  ])('returns no special use for %s', (address) => expect(specialUseOf(address)).toBeUndefined());

  const hex = (ipv4: string): string[] => ipv4.split('.').map((byte) => Number(byte).toString(16).padStart(2, '0'));
  const forms: Readonly<Record<string, (bytes: readonly string[], ipv4: string) => string>> = {
    'IPv4-mapped, dotted': (_, ipv4) => `::ffff:${ipv4}`,
    'IPv4-mapped, in capitals and full': ([a, b, c, d]) => `0:0:0:0:0:FFFF:${a}${b}:${c}${d}`.toUpperCase(),
    'IPv4-compatible': (_, ipv4) => `::${ipv4}`,
    'IPv4-translated': ([a, b, c, d]) => `::ffff:0:${a}${b}:${c}${d}`,
    'NAT64, well-known prefix': ([a, b, c, d]) => `64:ff9b::${a}${b}:${c}${d}`,
    'NAT64, well-known prefix, dotted': (_, ipv4) => `0064:ff9b::${ipv4}`,
    'NAT64, local prefix of 48 bits': ([a, b, c, d]) => `64:ff9b:1:${a}${b}:00${c}:${d}00::`,
    'NAT64, local prefix of 48 bits, with a suffix': ([a, b, c, d]) => `64:ff9b:1:${a}${b}:00${c}:${d}00:1:1`,
    'NAT64, local prefix of 56 bits': ([a, b, c, d]) => `64:ff9b:1:ab${a}:00${b}:${c}${d}::`,
    'NAT64, local prefix of 64 bits': ([a, b, c, d]) => `64:ff9b:1:abcd:00${a}:${b}${c}:${d}00:0`,
    'NAT64, local prefix of 96 bits': (_, ipv4) => `64:ff9b:1::${ipv4}`,
    '6to4': ([a, b, c, d]) => `2002:${a}${b}:${c}${d}::1`,
    'Teredo, server': ([a, b, c, d]) => `2001:0:${a}${b}:${c}${d}::f7f7:f7f7`,
    'Teredo, client': (bytes) => {
      const [a, b, c, d] = bytes.map((byte) => (Number.parseInt(byte, 16) ^ 0xff).toString(16).padStart(2, '0'));
      return `2001:0:808:808:0:0:${a}${b}:${c}${d}`;
    },
    ISATAP: (_, ipv4) => `2001:db8::5efe:${ipv4}`,
    'ISATAP, universal': (_, ipv4) => `2001:db8::200:5efe:${ipv4}`,
  };
  const ipv4s = [
    ['127.0.0.1', 'loopback'],
    ['169.254.169.254', 'link-local'],
    ['224.0.0.1', 'multicast'],
    ['255.255.255.255', 'reserved'],
    ['100.100.100.200', 'metadata'],
  ] as const;
  it.each(
    Object.entries(forms).flatMap(([form, write]) => ipv4s.map(([ipv4, use]) => [form, ipv4, use, write] as const)),
  )('finds in the form %s of %s the IPv4 address %s', (_, ipv4, use, write) => {
    const address = write(hex(ipv4), ipv4);
    expect(embeddedIpv4sOf(address)).toContain(ipv4);
    expect(specialUseOf(address)).toBe(use);
  });
});

describe('embeddedIpv4sOf', () => {
  it.each(['10.0.0.1', '::', '::1', '2001:db8::1', 'name', ''])('returns no address for %j', (address) =>
    expect(embeddedIpv4sOf(address)).toEqual([]),
  );

  it('recognizes an address in every notation', () => {
    const group = fc.oneof(fc.nat(0xffff), fc.constantFrom(0, 0, 0xffff, 0x64, 0xff9b, 1, 0x2002, 0x2001, 0x5efe));
    fc.assert(
      fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
        const fullAddress = groups.map((one) => one.toString(16).padStart(4, '0')).join(':');
        const canonical = new URL(`http://[${fullAddress}]`).hostname.slice(1, -1);
        expect(embeddedIpv4sOf(canonical)).toEqual(embeddedIpv4sOf(fullAddress.toUpperCase()));
        const blockList = new BlockList();
        blockList.addAddress(fullAddress, 'ipv6');
        expect(blockList.check(canonical, 'ipv6')).toBe(true);
        expect(specialUseOf(canonical)).toBe(specialUseOf(fullAddress));
      }),
      { seed: 33, numRuns: 300 },
    );
  });
});
