/** The hosts that a server serves on its port, in shares that are served alike, and reports of what its settings do not apply to. */
import type { ServerTlsSettings } from '../../model/kinds/gateway/gateway.ts';
import { type HostOwner, type HostOwners, lesserFields, ownerAt } from './host-owners.ts';
import { dnsName, gatewayName, kindOf, type PlacedServer, type ServerOnPort } from './placed-server.ts';
import type { TlsRequirements } from './tls-requirements.ts';

/** Hosts that a server serves in one way. */
export interface HostShare {
  /** As written. */
  readonly hosts: readonly string[];
  /** Settings in place of the server's. */
  readonly tls?: ServerTlsSettings | undefined;
  /** Why connections for these hosts are closed. */
  readonly closed?: string | undefined;
  /** Hosts within these ones whose own servers require more, and these servers. */
  readonly misdirected: ReadonlyMap<string, ServerOnPort>;
  /** Of the name of the route configuration; empty where the server's own settings apply. */
  readonly suffix: string;
}

export interface ServedHosts {
  /** Empty for a TLS server whose hosts are all served by others. Servers of other kinds have all of their hosts. */
  readonly shares: readonly HostShare[];
  /** Hosts that other servers serve; those first whose servers require less. */
  readonly lost: string | undefined;
  /** Hosts that are served otherwise than the server's settings say, or that are excepted from what another server requires. */
  readonly overlap: string | undefined;
}

interface ShareInMaking {
  readonly hosts: string[];
  /** Of the first of the hosts. */
  readonly owner: HostOwner;
  readonly misdirected: Map<string, ServerOnPort>;
}

export function servedHosts(placed: PlacedServer, owners: HostOwners, requirements: TlsRequirements): ServedHosts {
  const { one } = placed;
  const isTls = kindOf(one.server) === 'tls';
  const shares = new Map<string, ShareInMaking>();
  const reports = { less: new HostTexts(), lost: new HostTexts(), overlap: new HostTexts() };
  for (const host of one.server.hosts) {
    const owner = ownerAt(owners, placed, dnsName(host));
    if (owner?.one === one) {
      const key = owner.tls || owner.closed ? JSON.stringify([owner.tls, owner.closed]) : '';
      const share: ShareInMaking = shares.get(key) ?? { hosts: [], owner, misdirected: new Map() };
      shares.set(key, share);
      share.hosts.push(host);
      for (const [other, { owner: its }] of owner.misdirected) share.misdirected.set(other, its.one);
      reportOverlap(dnsName(host), owner, isTls, requirements, reports.overlap);
    } else if (owner !== undefined && isTls) {
      const fields = lesserFields(owner, { one }, requirements);
      const text = `served by ${gatewayName(owner.one.gateway)} on port ${one.port}`;
      const closed = owner.closed === undefined ? '' : `, where ${owner.closed}`;
      if (fields.length === 0) reports.lost.add(text + closed, dnsName(host));
      else reports.less.add(`${text}, with ${fields.join(', ')}`, dnsName(host));
    }
  }
  const are = (hosts: string, isOne: boolean, text: string): string => `${hosts} ${isOne ? 'is' : 'are'} ${text}`;
  return {
    shares: isTls ? [...shares].map(shareOf) : [{ hosts: one.server.hosts, misdirected: new Map(), suffix: '' }],
    lost: joined([...reports.less.texts(are), ...reports.lost.texts(are)]),
    overlap: joined([...reports.overlap.texts((hosts, _, text) => text.replace(hostsMark, hosts))]),
  };
}

function shareOf([key, { owner, ...share }]: [string, ShareInMaking]): HostShare {
  const { tls, closed } = owner;
  return { ...share, tls, closed, suffix: key === '' ? '' : `.${dnsName(share.hosts[0]!)}` };
}

/** Stands for the hosts of a text. */
const hostsMark = '\0';

function reportOverlap(
  host: string,
  { one, tls, closed, misdirected, exceptions }: HostOwner,
  isTls: boolean,
  requirements: TlsRequirements,
  texts: HostTexts,
): void {
  const own = one.server.tls;
  if (closed !== undefined) texts.add(`${hostsMark}: ${closed}`, host);
  if (isTls && tls !== undefined && own !== undefined) {
    const fields = requirements.lesserFields(own, tls).join(', ');
    texts.add(`${hostsMark}: the requirements of all servers of the namespace apply, this one has ${fields}`, host);
  }
  for (const [other, { owner, fields }] of isTls ? misdirected : []) {
    const server = gatewayName(owner.one.gateway);
    const text = `requests for ${hostsMark} get 421 over connections of this server, which has ${fields.join(', ')} of ${server}`;
    texts.add(text, other);
  }
  for (const [wildcard, { owner, fields }] of exceptions) {
    const server = gatewayName(owner.one.gateway);
    texts.add(`${hostsMark}: served with ${fields.join(', ')}, which ${server} requires for ${wildcard}`, host);
  }
}

/** Hosts by a text about them. */
class HostTexts {
  readonly #hosts = new Map<string, { readonly first: string; count: number }>();

  add(text: string, host: string): void {
    const known = this.#hosts.get(text);
    if (known === undefined) this.#hosts.set(text, { first: host, count: 1 });
    else if (known.first !== host) known.count++;
  }

  *texts(write: (hosts: string, isOne: boolean, text: string) => string): Generator<string> {
    for (const [text, { first, count }] of this.#hosts) {
      const more = count - 1;
      yield write(more === 0 ? first : `${first} and ${more} more host${more === 1 ? '' : 's'}`, more === 0, text);
    }
  }
}

/** Texts about hosts in one message. */
const maxTexts = 3;

function joined(texts: readonly string[]): string | undefined {
  if (texts.length === 0) return undefined;
  const more = texts.length - maxTexts;
  return [...texts.slice(0, maxTexts), ...(more > 0 ? [`${more} more such overlaps`] : [])].join('; ');
}
