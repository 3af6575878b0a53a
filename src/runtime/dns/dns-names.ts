/**
 * The names that the DNS server resolves itself: those of the control plane's table, and the names derived from them.
 */
import { isIP, SocketAddress } from 'node:net';
import { encode } from 'dns-packet';
import type { Steps } from '../turns.ts';
import type { NameInfo, NameTable } from './name-table.ts';

export type AddressType = 'A' | 'AAAA';

/** The addresses of each type in wire format: two bytes of length and the address. */
export type Addresses = Readonly<Record<AddressType, readonly Buffer[]>>;

export interface FoundName {
  readonly alias?: string;
  readonly addresses: Addresses;
}

export interface WorkloadNames {
  readonly namespace: string;
  readonly domain: string;
  /** The first search domain of resolv.conf, which applications try first; may be empty. */
  readonly search: string;
}

const maxNameBytes = 255;
const maxLabelBytes = 63;
const headerBytes = 12;

/** Names in lower case with a trailing dot. */
export class DnsNames {
  readonly #hosts = new Map<string, Addresses>();
  readonly #search: string;
  #skippedCount = 0;

  private constructor(search: string) {
    this.#search = search === '' ? '' : `.${search.toLowerCase()}.`;
  }

  /** Builds the names of a table in steps, because it may have a hundred thousand hosts. */
  static *of(table: NameTable, { namespace, domain, search }: WorkloadNames): Steps<DnsNames> {
    const dnsNames = new DnsNames(search);
    const proxyDomain = stripNamespace(domain.toLowerCase(), namespace);
    for (const [host, info] of table) {
      const addresses = yield* addressesOf(info);
      const names = namesOf(host.toLowerCase(), info, namespace, proxyDomain).filter(isQueryable);
      if (addresses === undefined || names.length === 0) dnsNames.#skippedCount++;
      else for (const name of names) dnsNames.#add(name, addresses);
      yield;
    }
    return dnsNames;
  }

  /** Number of omitted hosts, which have no valid address or no valid name. */
  get skipped(): number {
    return this.#skippedCount;
  }

  get size(): number {
    return this.#hosts.size;
  }

  *entries(): Generator<[name: string, addresses: string[]]> {
    for (const [name, { A, AAAA }] of this.#hosts) yield [name, [...A, ...AAAA].map(textOf)];
  }

  /** The exact name, or else the most specific wildcard. */
  find(name: string): FoundName | undefined {
    const hostRecord = this.#lookup(name);
    if (hostRecord !== undefined) return hostRecord;
    for (let dot = name.indexOf('.'); dot > 0 && dot < name.length - 1; dot = name.indexOf('.', dot + 1)) {
      const wildcard = this.#lookup(`*${name.slice(dot)}`);
      if (wildcard !== undefined) return wildcard;
    }
    return undefined;
  }

  /** An application tries its search domains in order, and a known name is resolved at the first one. */
  #lookup(name: string): FoundName | undefined {
    const addresses = this.#hosts.get(name);
    if (addresses !== undefined) return { addresses };
    if (this.#search === '' || !name.endsWith(this.#search)) return undefined;
    const alias = name.slice(0, name.length - this.#search.length + 1);
    const aliasAddresses = alias.endsWith(this.#search) ? undefined : this.#hosts.get(alias);
    return aliasAddresses === undefined ? undefined : { alias, addresses: aliasAddresses };
  }

  /** Hosts that share a name, for example one per address family, are resolved together. */
  #add(name: string, addresses: Addresses): void {
    const existingAddresses = this.#hosts.get(name);
    this.#hosts.set(name, existingAddresses === undefined ? addresses : joinAddresses(existingAddresses, addresses));
  }
}

function stripNamespace(domain: string, namespace: string): string {
  const prefix = `${namespace.toLowerCase()}.`;
  return namespace !== '' && domain.startsWith(prefix) ? domain.slice(prefix.length) : domain;
}

function namesOf(host: string, info: NameInfo, ownNamespace: string, proxyDomain: string): string[] {
  const { registry, shortname, namespace, altHosts } = info;
  if (registry !== 'Kubernetes' || proxyDomain === '' || !host.endsWith(`.${proxyDomain}`)) return [`${host}.`];
  const lowerShortname = shortname.toLowerCase();
  const names = [host, ...altHosts.map((alternativeHost) => alternativeHost.toLowerCase())];
  if (lowerShortname !== '' && namespace !== '') {
    names.push(`${lowerShortname}.${namespace}`.toLowerCase(), `${lowerShortname}.${namespace}.svc`.toLowerCase());
    if (namespace === ownNamespace) names.push(lowerShortname);
  }
  return [...new Set(names)].map((name) => `${name.replace(/\.$/, '')}.`);
}

function isQueryable(name: string): boolean {
  const labels = name.slice(0, -1).split('.');
  return name.length < maxNameBytes && labels.every((label) => label !== '' && label.length <= maxLabelBytes);
}

function* addressesOf({ ips }: NameInfo): Steps<Addresses | undefined> {
  const addresses = { A: [] as Buffer[], AAAA: [] as Buffer[] };
  for (const ip of new Set(ips)) {
    const family = isIP(ip);
    if (family === 4) addresses.A.push(rdata('A', ip));
    else if (family === 6 && !ip.includes('%')) addresses.AAAA.push(rdata('AAAA', ip));
    yield;
  }
  return addresses.A.length + addresses.AAAA.length === 0 ? undefined : addresses;
}

/** The record data after the header of the only record; the root name, type, class and TTL take 9 bytes. */
function rdata(type: AddressType, ip: string): Buffer {
  const message = encode({ type: 'response', answers: [{ type, name: '.', data: ip }] });
  return Buffer.from(message.subarray(headerBytes + 9));
}

function textOf(address: Buffer): string {
  if (address.length === 6) return address.subarray(2).join('.');
  const groups = Array.from({ length: 8 }, (_, i) => address.readUInt16BE(2 + 2 * i).toString(16)).join(':');
  return new SocketAddress({ address: groups, family: 'ipv6' }).address;
}

function joinAddresses(firstAddresses: Addresses, otherAddresses: Addresses): Addresses {
  const mergeType = (type: AddressType): Buffer[] => [
    ...new Map(
      [...firstAddresses[type], ...otherAddresses[type]].map((address) => [address.toString('latin1'), address]),
    ).values(),
  ];
  return { A: mergeType('A'), AAAA: mergeType('AAAA') };
}
