/**
 * Which server of a port serves a host. SNI chooses among the TLS servers of a port, so each host is served by one of them, and requests
 * for it that come over a connection to another server of the port, whose wildcard includes it, evade what its own server requires.
 */
import { coveringKeys } from '../../model/fields/hostname.ts';
import type { ServerTlsSettings } from '../../model/kinds/gateway/gateway.ts';
import {
  dnsName,
  gatewayName,
  isPassthrough,
  kindOf,
  listenerKey,
  type PlacedServer,
  type ServerOnPort,
} from './placed-server.ts';
import type { TlsRequirements } from './tls-requirements.ts';

/** The server of a host, and what applies to the host beside the settings of the server. */
export interface HostOwner {
  readonly one: ServerOnPort;
  /** In place of the server's own: they satisfy what other servers of the namespace require for the host. */
  readonly tls?: ServerTlsSettings;
  /** Why connections for the host are closed. */
  readonly closed?: string;
  /** Hosts within this one whose own servers require something that this one does not. */
  readonly misdirected: Map<string, OtherOwner>;
  /** Wildcards that include the host and whose servers require something that this one does not. */
  readonly exceptions: Map<string, OtherOwner>;
}

export interface OtherOwner {
  readonly owner: HostOwner;
  /** What one of the two does not require, as texts for people. */
  readonly fields: readonly string[];
}

/** By host, for each listener. */
export type HostOwners = ReadonlyMap<string, ReadonlyMap<string, HostOwner>>;

/** Hosts of TLS servers, and of HTTP servers, which have no certificates but may redirect to HTTPS. */
export function hostOwners(placed: readonly PlacedServer[], requirements: TlsRequirements): HostOwners {
  const claims = new Map<string, Map<string, ServerOnPort[]>>();
  for (const { one, bind, notThere } of placed) {
    if (notThere !== undefined || kindOf(one.server) === 'tcp') continue;
    const key = `${listenerKey(bind, one.port)} ${kindOf(one.server)}`;
    const ofListener = claims.get(key) ?? new Map<string, ServerOnPort[]>();
    claims.set(key, ofListener);
    for (const host of new Set(one.server.hosts.map(dnsName))) {
      const ofHost = ofListener.get(host);
      if (ofHost === undefined) ofListener.set(host, [one]);
      else ofHost.push(one);
    }
  }
  const owners = new Map<string, Map<string, HostOwner>>();
  for (const [key, ofListener] of claims) {
    const ofHosts = new Map<string, HostOwner>();
    for (const [host, claimants] of ofListener) ofHosts.set(host, ownerOf(claimants, requirements));
    compareWithWildcards(ofHosts, requirements);
    owners.set(key, ofHosts);
  }
  return owners;
}

/** The owner of a host of a server. */
export function ownerAt(owners: HostOwners, { one, bind }: PlacedServer, host: string): HostOwner | undefined {
  return owners.get(`${listenerKey(bind, one.port)} ${kindOf(one.server)}`)?.get(host);
}

/**
 * The oldest server serves the host. Where the servers of one namespace differ in what they require, the strictest of them serves it, with
 * what all of them require: a host is never open because an older object forgot its client certificates. A server of another namespace takes
 * no host over.
 */
function ownerOf(claimants: readonly ServerOnPort[], requirements: TlsRequirements): HostOwner {
  const parts = { misdirected: new Map(), exceptions: new Map() };
  let [one] = claimants as [ServerOnPort, ...ServerOnPort[]];
  if (claimants.length === 1) return { one, ...parts };
  const { namespace } = one.gateway;
  const rivals = claimants.filter((rival) => rival.gateway.namespace === namespace && hasRequirements(rival));
  if (!hasRequirements(one)) return { one, ...parts };
  for (const rival of rivals) if (isStricter(rival, one, requirements)) one = rival;
  if (one.closed !== undefined) return { one, ...parts };
  let tls = tlsOf(one);
  for (const rival of rivals) {
    if (rival === one || requirements.lesserFields(tls, tlsOf(rival)).length === 0) continue;
    const both = requirements.both(tls, tlsOf(rival));
    if (typeof both === 'string') {
      const servers = `${gatewayName(one.gateway)} and ${gatewayName(rival.gateway)}`;
      return { one, closed: `its connections are closed, because ${both} ${servers}`, ...parts };
    }
    tls = both;
  }
  return { one, ...(tls !== tlsOf(one) && { tls }), ...parts };
}

function isStricter(rival: ServerOnPort, one: ServerOnPort, requirements: TlsRequirements): boolean {
  if (rival === one || one.closed !== undefined) return false;
  if (rival.closed !== undefined) return true;
  const [own, least] = [tlsOf(rival), tlsOf(one)];
  const more = requirements.demandOf(own) - requirements.demandOf(least);
  if (more !== 0) return more > 0;
  return requirements.lesserFields(least, own).length > 0 && requirements.lesserFields(own, least).length === 0;
}

/** Backends decide for TLS that is passed through. */
function hasRequirements({ server, closed }: ServerOnPort): boolean {
  return closed !== undefined || kindOf(server) !== 'tls' || !isPassthrough(server);
}

const noTls: ServerTlsSettings = { mode: 'PASSTHROUGH' };

function tlsOf({ server }: ServerOnPort): ServerTlsSettings {
  return server.tls ?? noTls;
}

/** Fields in which the server of a host requires less than another server does for the same host. */
export function lesserFields(
  { one, tls = tlsOf(one), closed = one.closed }: HostOwner,
  other: Pick<HostOwner, 'one' | 'tls' | 'closed'>,
  requirements: TlsRequirements,
): readonly string[] {
  if (closed !== undefined || !hasRequirements(one)) return [];
  if ((other.closed ?? other.one.closed) !== undefined) return ['open connections instead of closed ones'];
  const otherMode = tlsOf(other.one).mode;
  // Its connections have SNIs of their own (`outbound_…`), not its hosts.
  if (otherMode === 'AUTO_PASSTHROUGH') return [];
  if (!hasRequirements(other.one)) return [`mode ${tls.mode} instead of ${otherMode}`];
  return requirements.lesserFields(tls, other.tls ?? tlsOf(other.one));
}

function compareWithWildcards(owners: ReadonlyMap<string, HostOwner>, requirements: TlsRequirements): void {
  for (const [host, owner] of owners) {
    for (const wildcard of coveringKeys(host, owners)) {
      const wider = owners.get(wildcard)!;
      if (wildcard === host || (wider.one === owner.one && wider.tls === owner.tls)) continue;
      const missing = lesserFields(wider, owner, requirements);
      if (missing.length > 0) wider.misdirected.set(host, { owner, fields: missing });
      // A closed server serves nothing that the host could be an exception of.
      const excepted = wider.one.closed === undefined ? lesserFields(owner, wider, requirements) : [];
      if (excepted.length > 0) owner.exceptions.set(wildcard, { owner: wider, fields: excepted });
    }
  }
}
