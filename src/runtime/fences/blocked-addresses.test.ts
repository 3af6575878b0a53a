import { describe, expect, it } from 'vitest';
import { BlockedAddresses } from './blocked-addresses.ts';

describe('address in a configuration object', () => {
  it.each([
    ...['127.0.0.1', '127.9.9.9', '::1', '0.0.0.0', '::', '169.254.169.254', 'fe80::1%eth0', '100.100.100.200'],
    ...['fd00:ec2::254', '::ffff:127.0.0.1', '::ffff:7f00:1', '64:ff9b::7f00:1', '2002:7f00:1::', '::127.0.0.1'],
  ])('is blocked by default if it is %s', (address) => {
    expect(new BlockedAddresses().problemOf(address)).toMatch(
      /^a [a-z-]+ address and not in ALLOWED_CIDRS_IN_JWKS_URIS$/,
    );
  });

  it.each(['10.0.0.1', '192.168.1.1', '172.16.0.1', 'fd12::1', '8.8.8.8', '2001:db8::1', '::ffff:10.0.0.1'])(
    'is permitted by default if it is %s',
    (address) => {
      expect(new BlockedAddresses().problemOf(address)).toBeUndefined();
    },
  );

  it('is blocked in any notation if its network is blocked, even if it is also allowed', () => {
    const addresses = new BlockedAddresses({
      blocked: ['10.0.0.0/8', '127.0.0.1'],
      allowed: ['127.0.0.0/8', '10.0.0.1'],
    });
    for (const address of ['10.0.0.1', '::ffff:10.0.0.1', '64:ff9b::a00:1', '127.0.0.1'])
      expect(addresses.problemOf(address), address).toBe('in BLOCKED_CIDRS_IN_JWKS_URIS');
    expect(addresses.problemOf('127.0.0.2')).toBeUndefined();
    expect(addresses.problemOf('11.0.0.1')).toBeUndefined();
  });

  it('is not permitted by a network that contains only a prefix of it', () => {
    expect(new BlockedAddresses({ allowed: ['64:ff9b::/96'] }).problemOf('64:ff9b::7f00:1')).toMatch(
      /^a loopback address/,
    );
  });
});

it.each(['x', '10.0.0.0/33', '10.0.0/8'])('the address setting %j is rejected', (network) => {
  expect(() => new BlockedAddresses({ blocked: [network] })).toThrow('BLOCKED_CIDRS_IN_JWKS_URIS');
  expect(() => new BlockedAddresses({ allowed: [network] })).toThrow('ALLOWED_CIDRS_IN_JWKS_URIS');
});
