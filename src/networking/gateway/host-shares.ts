import type { ServerTlsSettings } from '../../model/kinds/gateway/gateway.ts';
import { type HostOwner, type HostOwners, ownerAt, weakerFields } from './host-owners.ts';
import { dnsName, gatewayName, type ServerOnPort, type ServerPlacement, serverKindOf } from './placed-server.ts';
import type { TlsRequirements } from './tls-requirements.ts';

export interface HostShare {
  /** As written in the Gateway object. */
  readonly hosts: readonly string[];
  readonly tls?: ServerTlsSettings | undefined;
  readonly closedReason?: string | undefined;
  readonly misdirected: ReadonlyMap<string, ServerOnPort>;
  readonly suffix: string;
}

export interface ServedHosts {
  /** Empty for a TLS server if other servers serve all its hosts. HTTP and TCP servers keep all hosts. */
  readonly shares: readonly HostShare[];
  /** Message about hosts that other servers serve. Hosts with less strict servers come first. */
  readonly lostHostsText: string | undefined;
  /** Message about hosts whose settings are not those of this server, or are weaker than another server requires. */
  readonly overlapText: string | undefined;
}

interface ShareBuilder {
  readonly hosts: string[];
  readonly owner: HostOwner;
  readonly misdirected: Map<string, ServerOnPort>;
}

export function servedHosts(
  serverPlacement: ServerPlacement,
  owners: HostOwners,
  requirements: TlsRequirements,
): ServedHosts {
  const { serverOnPort } = serverPlacement;
  const isTls = serverKindOf(serverOnPort.server) === 'tls';
  const sharesByTls = new Map<string, ShareBuilder>();
  const reports = { less: new HostTexts(), lost: new HostTexts(), overlap: new HostTexts() };
  for (const host of serverOnPort.server.hosts) {
    const owner = ownerAt(owners, serverPlacement, dnsName(host));
    if (owner?.serverOnPort === serverOnPort) {
      const key = owner.tls || owner.closedReason ? JSON.stringify([owner.tls, owner.closedReason]) : '';
      const share: ShareBuilder = sharesByTls.get(key) ?? { hosts: [], owner, misdirected: new Map() };
      sharesByTls.set(key, share);
      share.hosts.push(host);
      for (const [otherHost, { owner: otherOwner }] of owner.misdirected)
        share.misdirected.set(otherHost, otherOwner.serverOnPort);
      reportOverlap(dnsName(host), owner, isTls, requirements, reports.overlap);
    } else if (owner !== undefined && isTls) {
      const fields = weakerFields(owner, { serverOnPort }, requirements);
      const text = `served by ${gatewayName(owner.serverOnPort.gateway)} on port ${serverOnPort.port}`;
      const closedText = owner.closedReason === undefined ? '' : `, where ${owner.closedReason}`;
      if (fields.length === 0) reports.lost.add(text + closedText, dnsName(host));
      else reports.less.add(`${text}, with ${fields.join(', ')}`, dnsName(host));
    }
  }
  const sentence = (hosts: string, isSingular: boolean, text: string): string =>
    `${hosts} ${isSingular ? 'is' : 'are'} ${text}`;
  return {
    shares: isTls
      ? [...sharesByTls].map(shareOf)
      : [{ hosts: serverOnPort.server.hosts, misdirected: new Map(), suffix: '' }],
    lostHostsText: joinTexts([...reports.less.texts(sentence), ...reports.lost.texts(sentence)]),
    overlapText: joinTexts([...reports.overlap.texts((hosts, _, text) => text.replace(hostsPlaceholder, hosts))]),
  };
}

function shareOf([key, { owner, ...share }]: [string, ShareBuilder]): HostShare {
  const { tls, closedReason } = owner;
  return { ...share, tls, closedReason, suffix: key === '' ? '' : `.${dnsName(share.hosts[0]!)}` };
}

const hostsPlaceholder = '\0';

function reportOverlap(
  host: string,
  { serverOnPort, tls, closedReason, misdirected, exceptions }: HostOwner,
  isTls: boolean,
  requirements: TlsRequirements,
  texts: HostTexts,
): void {
  const serverTls = serverOnPort.server.tls;
  if (closedReason !== undefined) texts.add(`${hostsPlaceholder}: ${closedReason}`, host);
  if (isTls && tls !== undefined && serverTls !== undefined) {
    const fields = requirements.weakerFields(serverTls, tls).join(', ');
    texts.add(
      `${hostsPlaceholder}: the requirements of all servers of the namespace apply, this one has ${fields}`,
      host,
    );
  }
  for (const [otherHost, { owner, fields }] of isTls ? misdirected : []) {
    const server = gatewayName(owner.serverOnPort.gateway);
    const text = `requests for ${hostsPlaceholder} get 421 over connections of this server, which has ${fields.join(', ')} of ${server}`;
    texts.add(text, otherHost);
  }
  for (const [wildcard, { owner, fields }] of exceptions) {
    const server = gatewayName(owner.serverOnPort.gateway);
    texts.add(`${hostsPlaceholder}: served with ${fields.join(', ')}, which ${server} requires for ${wildcard}`, host);
  }
}

class HostTexts {
  readonly #hosts = new Map<string, { readonly first: string; count: number }>();

  add(text: string, host: string): void {
    const cachedShare = this.#hosts.get(text);
    if (cachedShare === undefined) this.#hosts.set(text, { first: host, count: 1 });
    else if (cachedShare.first !== host) cachedShare.count++;
  }

  *texts(write: (hosts: string, isSingular: boolean, text: string) => string): Generator<string> {
    for (const [text, { first, count }] of this.#hosts) {
      const remainingCount = count - 1;
      yield write(
        remainingCount === 0 ? first : `${first} and ${remainingCount} more host${remainingCount === 1 ? '' : 's'}`,
        remainingCount === 0,
        text,
      );
    }
  }
}

const maxTexts = 3;

function joinTexts(texts: readonly string[]): string | undefined {
  if (texts.length === 0) return undefined;
  const remainingCount = texts.length - maxTexts;
  return [...texts.slice(0, maxTexts), ...(remainingCount > 0 ? [`${remainingCount} more such overlaps`] : [])].join(
    '; ',
  );
}
