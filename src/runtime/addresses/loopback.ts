import { BlockList, isIP } from 'node:net';

/** An address has several notations, and an IPv4-mapped IPv6 address is the same address. */
const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** `127.0.0.0/8`, also IPv4-mapped, or `::1`. False for a name. */
export function isLoopback(address: string | undefined): boolean {
  const version = isIP(address ?? '');
  return version !== 0 && loopback.check(address!, version === 4 ? 'ipv4' : 'ipv6');
}
