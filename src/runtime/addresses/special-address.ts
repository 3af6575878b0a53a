/** IP addresses that reach no workload of the network but the host itself, its link, or its cloud. */
import { BlockList, isIPv4, isIPv6 } from 'node:net';

/** `malformed`: the text is not an IP address. `unspecified` includes all of 0.0.0.0/8, which Linux connects to itself. */
export type SpecialUse =
  | 'malformed'
  | 'unspecified'
  | 'loopback'
  | 'link-local'
  | 'site-local'
  | 'multicast'
  | 'reserved'
  | 'metadata';

const networksByUse: Readonly<Record<Exclude<SpecialUse, 'malformed'>, readonly string[]>> = {
  unspecified: ['0.0.0.0/8', '::/128'],
  loopback: ['127.0.0.0/8', '::1/128'],
  'link-local': ['169.254.0.0/16', 'fe80::/10'],
  'site-local': ['fec0::/10'],
  multicast: ['224.0.0.0/4', 'ff00::/8'],
  reserved: ['240.0.0.0/4', '100::/64'],
  // Metadata services of clouds outside the link-local range: Alibaba, Azure and Oracle for IPv4; AWS, Google, Oracle and Scaleway for IPv6.
  metadata: [
    ...['100.100.100.200/32', '168.63.129.16/32', '192.0.0.192/32'],
    ...['fd00:ec2::/32', 'fd20:ce::254/128', 'fd00:c1::a9fe:a9fe/128', 'fd00:42::42/128'],
  ],
};

const uses = Object.entries(networksByUse).map(([use, networks]) => ({
  use: use as SpecialUse,
  list: blockListOf(networks),
}));

/**
 * The special use of an address, or of an IPv4 address that an IPv6 address embeds; `undefined` for the address of a possible workload. To grant a
 * privilege to loopback, use `isLoopback` instead.
 */
export function specialUseOf(address: string): SpecialUse | undefined {
  if (!isIPv4(address) && !isIPv6(address)) return 'malformed';
  for (const candidate of [stripZone(address), ...embeddedIpv4sOf(address)]) {
    const family = isIPv4(candidate) ? 'ipv4' : 'ipv6';
    const matchingUse = uses.find(({ list }) => list.check(candidate, family));
    if (matchingUse !== undefined) return matchingUse.use;
  }
  return undefined;
}

interface Embedding {
  readonly prefix: readonly number[];
  readonly layouts: readonly (readonly number[])[];
}

const lastFour = [12, 13, 14, 15];
const embeddings: readonly Embedding[] = [
  // IPv4-compatible (RFC 4291 §2.5.5.1), IPv4-mapped, IPv4-translated (RFC 2765).
  { prefix: [0, 0, 0, 0, 0, 0], layouts: [lastFour] },
  { prefix: [0, 0, 0, 0, 0, 0xffff], layouts: [lastFour] },
  { prefix: [0, 0, 0, 0, 0xffff, 0], layouts: [lastFour] },
  // NAT64's well-known prefix (RFC 6052).
  { prefix: [0x64, 0xff9b, 0, 0, 0, 0], layouts: [lastFour] },
  // 6to4 (RFC 3056); the server of Teredo (RFC 4380), whose client is below.
  { prefix: [0x2002], layouts: [[2, 3, 4, 5]] },
  { prefix: [0x2001, 0], layouts: [[4, 5, 6, 7]] },
];

/** NAT64's local prefix (RFC 8215). Its length determines the layout (RFC 6052 §2.2) and is unknown. */
const localNat64: Embedding = {
  prefix: [0x64, 0xff9b, 1],
  layouts: [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], lastFour],
};

/** IPv4 addresses to which a packet for this IPv6 address can be delivered: IPv4-mapped, -compatible and -translated, NAT64, 6to4, Teredo, ISATAP. */
export function embeddedIpv4sOf(address: string): readonly string[] {
  if (!isIPv6(address)) return [];
  const groups = groupsOf(address);
  if (groups.slice(0, 7).every((group) => group === 0) && groups[7]! < 2) return [];
  const bytes = groups.flatMap((group) => [group >> 8, group & 0xff]);
  const ipv4At = (layout: readonly number[]): string => layout.map((byteIndex) => bytes[byteIndex]).join('.');
  const hasPrefix = ({ prefix }: Embedding): boolean => prefix.every((group, index) => groups[index] === group);
  const embeddedIpv4s = embeddings.filter(hasPrefix).flatMap(({ layouts }) => layouts.map(ipv4At));
  if (groups[0] === 0x2001 && groups[1] === 0)
    embeddedIpv4s.push(lastFour.map((byteIndex) => bytes[byteIndex]! ^ 0xff).join('.'));
  if (groups[5] === 0x5efe && (groups[4]! & ~0x200) === 0) embeddedIpv4s.push(ipv4At(lastFour));
  // In a layout that the translator does not use, the bytes are mostly zeros.
  if (hasPrefix(localNat64))
    embeddedIpv4s.push(...localNat64.layouts.map(ipv4At).filter((ipv4) => !ipv4.startsWith('0.')));
  return [...new Set(embeddedIpv4s)];
}

function groupsOf(address: string): number[] {
  const text = stripZone(address).replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a, b, c, d) =>
    [a * 256 + +b, c * 256 + +d].map((group) => group.toString(16)).join(':'),
  );
  const [head, tail] = text.split('::').map((part) => (part === '' ? [] : part.split(':')));
  const zeros = Array.from({ length: 8 - head!.length - (tail?.length ?? 0) }, () => '0');
  return [...head!, ...zeros, ...(tail ?? [])].map((group) => Number.parseInt(group, 16));
}

function stripZone(address: string): string {
  return address.replace(/%.*$/, '');
}

function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address, bits] = network.split('/');
    list.addSubnet(address!, Number(bits), isIPv4(address!) ? 'ipv4' : 'ipv6');
  }
  return list;
}
