import { BlockList, isIP } from 'node:net';

/** As numbers, not as text: an address can be written in many ways, and one that was mapped to IPv6 is the same one. */
const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Whether an address is this host's own: `127.…`, also as IPv6 writes it, or `::1`. A name is none. */
export function isLoopback(address: string | undefined): boolean {
  const version = isIP(address ?? '');
  return version !== 0 && loopback.check(address!, version === 4 ? 'ipv4' : 'ipv6');
}
