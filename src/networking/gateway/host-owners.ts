/**
 * The SNI of a connection selects its server. On a connection for a wider wildcard, a request for another host would evade the requirements of that
 * host's server.
 */
import { coveringKeys } from '../../model/fields/hostname.ts';
import type { ServerTlsSettings } from '../../model/kinds/gateway/gateway.ts';
import {
  dnsName,
  gatewayName,
  isPassthrough,
  listenerKey,
  type ServerOnPort,
  type ServerPlacement,
  serverKindOf,
} from './placed-server.ts';
import type { TlsRequirements } from './tls-requirements.ts';

export interface HostOwner {
  readonly serverOnPort: ServerOnPort;
  /** Overrides the server's TLS settings, because other servers of the namespace require more for this host. */
  readonly tls?: ServerTlsSettings;
  readonly closedReason?: string;
  /** Narrower hosts whose servers have requirements that this server lacks. */
  readonly misdirected: Map<string, DifferingOwner>;
  /** Wider wildcards whose servers have requirements that this server lacks. */
  readonly exceptions: Map<string, DifferingOwner>;
}

export interface DifferingOwner {
  readonly owner: HostOwner;
  readonly fields: readonly string[];
}

export type HostOwners = ReadonlyMap<string, ReadonlyMap<string, HostOwner>>;

/** Includes HTTP servers, because they may redirect to HTTPS. */
export function hostOwners(serverPlacements: readonly ServerPlacement[], requirements: TlsRequirements): HostOwners {
  const claims = new Map<string, Map<string, ServerOnPort[]>>();
  for (const { serverOnPort, bind, unavailableReason } of serverPlacements) {
    if (unavailableReason !== undefined || serverKindOf(serverOnPort.server) === 'tcp') continue;
    const key = `${listenerKey(bind, serverOnPort.port)} ${serverKindOf(serverOnPort.server)}`;
    const claimsByHost = claims.get(key) ?? new Map<string, ServerOnPort[]>();
    claims.set(key, claimsByHost);
    for (const host of new Set(serverOnPort.server.hosts.map(dnsName))) {
      const hostClaimants = claimsByHost.get(host);
      if (hostClaimants === undefined) claimsByHost.set(host, [serverOnPort]);
      else hostClaimants.push(serverOnPort);
    }
  }
  const owners = new Map<string, Map<string, HostOwner>>();
  for (const [key, claimsByHost] of claims) {
    const ownersByHost = new Map<string, HostOwner>();
    for (const [host, claimants] of claimsByHost) ownersByHost.set(host, ownerOf(claimants, requirements));
    compareWithWildcards(ownersByHost, requirements);
    owners.set(key, ownersByHost);
  }
  return owners;
}

export function ownerAt(
  owners: HostOwners,
  { serverOnPort, bind }: ServerPlacement,
  host: string,
): HostOwner | undefined {
  return owners.get(`${listenerKey(bind, serverOnPort.port)} ${serverKindOf(serverOnPort.server)}`)?.get(host);
}

/**
 * Returns the oldest server. If other servers of its namespace have different requirements, returns the strictest of them, with the requirements of
 * all: an older server without client certificates must not expose a host that a newer one protects. A server of another namespace never takes over a
 * host.
 */
function ownerOf(claimants: readonly ServerOnPort[], requirements: TlsRequirements): HostOwner {
  const hostRelations = { misdirected: new Map(), exceptions: new Map() };
  let [serverOnPort] = claimants as [ServerOnPort, ...ServerOnPort[]];
  if (claimants.length === 1) return { serverOnPort, ...hostRelations };
  const { namespace } = serverOnPort.gateway;
  const competingServers = claimants.filter(
    (rivalServer) => rivalServer.gateway.namespace === namespace && hasRequirements(rivalServer),
  );
  if (!hasRequirements(serverOnPort)) return { serverOnPort, ...hostRelations };
  for (const rivalServer of competingServers)
    if (isStricter(rivalServer, serverOnPort, requirements)) serverOnPort = rivalServer;
  if (serverOnPort.closedReason !== undefined) return { serverOnPort, ...hostRelations };
  let tls = tlsOf(serverOnPort);
  for (const rivalServer of competingServers) {
    if (rivalServer === serverOnPort || requirements.weakerFields(tls, tlsOf(rivalServer)).length === 0) continue;
    const combinedTls = requirements.combine(tls, tlsOf(rivalServer));
    if (typeof combinedTls === 'string') {
      const servers = `${gatewayName(serverOnPort.gateway)} and ${gatewayName(rivalServer.gateway)}`;
      return {
        serverOnPort,
        closedReason: `its connections are closed, because ${combinedTls} ${servers}`,
        ...hostRelations,
      };
    }
    tls = combinedTls;
  }
  return { serverOnPort, ...(tls !== tlsOf(serverOnPort) && { tls }), ...hostRelations };
}

function isStricter(competingServer: ServerOnPort, serverOnPort: ServerOnPort, requirements: TlsRequirements): boolean {
  if (competingServer === serverOnPort || serverOnPort.closedReason !== undefined) return false;
  if (competingServer.closedReason !== undefined) return true;
  const [competingTls, currentTls] = [tlsOf(competingServer), tlsOf(serverOnPort)];
  const difference = requirements.demandOf(competingTls) - requirements.demandOf(currentTls);
  if (difference !== 0) return difference > 0;
  return (
    requirements.weakerFields(currentTls, competingTls).length > 0 &&
    requirements.weakerFields(competingTls, currentTls).length === 0
  );
}

/** Returns false for passthrough TLS, because the backends decide. */
function hasRequirements({ server, closedReason }: ServerOnPort): boolean {
  return closedReason !== undefined || serverKindOf(server) !== 'tls' || !isPassthrough(server);
}

const noTls: ServerTlsSettings = { mode: 'PASSTHROUGH' };

function tlsOf({ server }: ServerOnPort): ServerTlsSettings {
  return server.tls ?? noTls;
}

export function weakerFields(
  { serverOnPort, tls = tlsOf(serverOnPort), closedReason = serverOnPort.closedReason }: HostOwner,
  otherOwner: Pick<HostOwner, 'serverOnPort' | 'tls' | 'closedReason'>,
  requirements: TlsRequirements,
): readonly string[] {
  if (closedReason !== undefined || !hasRequirements(serverOnPort)) return [];
  if ((otherOwner.closedReason ?? otherOwner.serverOnPort.closedReason) !== undefined)
    return ['open connections instead of closed ones'];
  const otherMode = tlsOf(otherOwner.serverOnPort).mode;
  // Connections to a server with AUTO_PASSTHROUGH have SNIs of the form `outbound_…`.
  if (otherMode === 'AUTO_PASSTHROUGH') return [];
  if (!hasRequirements(otherOwner.serverOnPort)) return [`mode ${tls.mode} instead of ${otherMode}`];
  return requirements.weakerFields(tls, otherOwner.tls ?? tlsOf(otherOwner.serverOnPort));
}

function compareWithWildcards(owners: ReadonlyMap<string, HostOwner>, requirements: TlsRequirements): void {
  for (const [host, owner] of owners) {
    for (const wildcard of coveringKeys(host, owners)) {
      const widerOwner = owners.get(wildcard)!;
      if (wildcard === host || (widerOwner.serverOnPort === owner.serverOnPort && widerOwner.tls === owner.tls))
        continue;
      const weakerFieldNames = weakerFields(widerOwner, owner, requirements);
      if (weakerFieldNames.length > 0) widerOwner.misdirected.set(host, { owner, fields: weakerFieldNames });
      // A closed wider server serves no requests.
      const exceptionFields =
        widerOwner.serverOnPort.closedReason === undefined ? weakerFields(owner, widerOwner, requirements) : [];
      if (exceptionFields.length > 0) owner.exceptions.set(wildcard, { owner: widerOwner, fields: exceptionFields });
    }
  }
}
