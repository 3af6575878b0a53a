/**
 * All Gateway objects of a proxy as one list of ports (spec/discovery.md §8.7). Listeners, routes and clusters are made
 * from it.
 */
import { onceFor, onceForPair } from '../../model/collections/once-for.ts';
import { WeakValues } from '../../model/collections/weak-values.ts';
import { type Config, configKeyOf, configKeyText } from '../../model/config/config.ts';
import { booleanOf } from '../../model/fields/go-boolean.ts';
import type { Gateway, Server } from '../../model/kinds/gateway.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { gatewayServicesOf, isGatewayService } from '../../model/push-context/gateway-index.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { ServiceTarget } from '../../model/services/service.ts';
import type { Origin } from '../inputs/message-origin.ts';
import { isUnixSocket, wildcardAddress } from '../messages/address.ts';
import { isPrivilegedPort } from '../traffic/reserved-ports.ts';
import { gatewayHttpRouteName, gatewayHttpsRouteName } from '../traffic/resource-names.ts';
import { unenforceableTls } from '../traffic/unenforceable-tls.ts';

/** One server of a Gateway object on one port of the proxy. */
export interface GatewayServer {
  readonly gateway: Config<Gateway>;
  readonly server: Server;
  /** The server's place in the object. */
  readonly index: number;
  /** The port that the proxy listens on. */
  readonly port: number;
  /** Hosts as written (`namespace/host`), without those that another TLS server of the port serves. */
  readonly hosts: readonly string[];
  /** Set for servers whose requests are routed: HTTP, and HTTPS that ends here. */
  readonly routeName?: string;
  /**
   * Why it lets nobody in: what it asks of its clients cannot be asked. Its connections are closed, and go to no other server
   * of the port, which may ask for less.
   */
  readonly closed?: string;
}

export interface GatewayPort {
  readonly port: number;
  readonly bind: string | undefined;
  readonly kind: ServerKind;
  /** Oldest first; at least one. */
  readonly servers: readonly GatewayServer[];
}

/** What may share a port: plain HTTP with itself, TLS with itself; plain TCP with nothing. */
export type ServerKind = 'http' | 'tls' | 'tcp';

export interface MergedGateways {
  readonly ports: readonly GatewayPort[];
  /** The servers behind each route configuration. */
  readonly routes: ReadonlyMap<string, readonly GatewayServer[]>;
  readonly hasAutoPassthrough: boolean;
  /** Servers that serve nothing, or not all of their hosts, and why: shown to the author. */
  readonly rejected: readonly string[];
}

/** The server as the Gateway object has it, or as it was written where that object was made of another. */
export function gatewayOrigin({ gateway, index }: GatewayServer): Origin {
  const made = gateway.madeOf?.[`servers[${index}]`]?.[0];
  return made ?? { key: configKeyOf(gateway), path: ['spec', 'servers', index] };
}

/** Name of a Gateway object as virtual services refer to it. */
export function gatewayName(gateway: Config<Gateway>): string {
  return `${gateway.namespace}/${gateway.name}`;
}

/**
 * Merged once for a shape and the objects that select it: most changes leave both as they are, and each route configuration
 * asks for it. Shapes of which the servers come to the same ports share it, whatever else tells them apart.
 */
export function mergeGateways(shape: ProxyShape, push: Pick<PushContext, 'gatewaysFor'>): MergedGateways {
  return mergedFor(push.gatewaysFor(shape), shape);
}

const mergedFor = onceForPair((gateways: readonly Config<Gateway>[], shape: ProxyShape): MergedGateways => {
  const placed = placedServers(gateways, shape);
  const key = placed.map(placeText).join('\n');
  const known = ofGateways(gateways);
  const same = known.get(key);
  if (same !== undefined) return same;
  const made = merge(placed);
  known.set(key, made);
  return made;
});

/** Held by the shapes that have them. */
const ofGateways = onceFor((_: readonly Config<Gateway>[]) => new WeakValues<MergedGateways>());

/** A server on a port of the proxy, before it is known whether older ones leave it anything there. */
interface PlacedServer {
  readonly one: Omit<GatewayServer, 'hosts' | 'routeName'>;
  /** Absent for all addresses, which some servers say and others do not: they share a listener. */
  readonly bind: string | undefined;
  /** Why the port cannot be listened on. */
  readonly notThere: string | undefined;
}

/** All that of a shape decides what is merged. */
function placedServers(gateways: readonly Config<Gateway>[], shape: ProxyShape): readonly PlacedServer[] {
  const overTcp = shape.serviceTargets.filter(({ port }) => port.protocol !== 'UDP');
  const targets = Map.groupBy(overTcp, ({ port }) => port.number);
  const placed = gateways.flatMap((gateway) => {
    const named = gatewayServicesOf(gateway);
    return gateway.spec.servers.flatMap((server, index) => {
      const closed = server.closed ?? (server.tls && unenforceableTls(server.tls, shape));
      return proxyPorts(server, gateway, named, targets).map((port) => ({
        one: { gateway, server, index, port, ...(closed && { closed }) },
        bind: server.bind || undefined,
        notThere: isPrivilegedPort(port, shape) ? 'the pod may not bind ports below 1024' : undefined,
      }));
    });
  });
  const atAll = new Set(placed.filter(({ bind }) => bind === undefined).map(({ one }) => one.port));
  return placed.map((one) =>
    atAll.has(one.one.port) && isEveryAddress(one.bind, shape) ? { ...one, bind: undefined } : one,
  );
}

/** Whether it binds what a server without a `bind` binds, or a part of that. */
function isEveryAddress(bind: string | undefined, { ipFamily }: Pick<ProxyShape, 'ipFamily'>): boolean {
  return bind === wildcardAddress(ipFamily) || (ipFamily === 'dual' && bind === wildcardAddress('v6'));
}

/** Of the same objects, in their order: which server it is, where, and what is wrong with it. */
function placeText({ one: { gateway, index, port, closed = '' }, bind = '', notThere = '' }: PlacedServer): string {
  return `${gatewayName(gateway)} ${index} ${bind} ${port} ${closed} ${notThere}`;
}

function merge(placed: readonly PlacedServer[]): MergedGateways {
  const ports = new Map<string, PortInMaking>();
  const rejected: string[] = [];
  const ownerOf = tlsHostOwners(placed);
  for (const { one, bind, notThere } of placed) {
    const { gateway, server, closed } = one;
    const lost = lostHosts(one, bind, ownerOf);
    const reason = notThere ?? add(ports, one, bind, lost) ?? closed ?? lostText(one, lost);
    if (reason) rejected.push(`${configKeyText(gateway)} server ${server.port.name || server.port.number}: ${reason}`);
  }
  const all = [...ports.values()].flatMap((merged) => merged.servers);
  return {
    ports: [...ports.values()].map(({ port, bind, kind, servers }) => ({ port, bind, kind, servers })),
    routes: byRoute(all),
    hasAutoPassthrough: all.some(({ server }) => server.tls?.mode === 'AUTO_PASSTHROUGH'),
    rejected,
  };
}

type Unplaced = PlacedServer['one'];
/** The server that serves a host of a port by TLS, by `bind~port host`. */
type HostOwners = ReadonlyMap<string, Unplaced>;

/**
 * SNI chooses among the TLS servers of a port, so each host is served by one of them: the oldest. Where the servers of one
 * namespace differ in what they ask of clients, the strictest of them serves it, so that a host is never open because an
 * older object forgot its client certificates. A server of another namespace takes no host over.
 */
function tlsHostOwners(placed: readonly PlacedServer[]): HostOwners {
  const owners = new Map<string, Unplaced>();
  for (const { one, bind, notThere } of placed) {
    if (notThere !== undefined || kindOf(one.server) !== 'tls') continue;
    for (const host of new Set(one.server.hosts.map(dnsName))) {
      const key = hostKey(bind, one.port, host);
      const owner = owners.get(key);
      if (owner === undefined || isStricterOfNamespace(one, owner)) owners.set(key, one);
    }
  }
  return owners;
}

function isStricterOfNamespace(one: Unplaced, owner: Unplaced): boolean {
  if (one.gateway.namespace !== owner.gateway.namespace) return false;
  const [demand, least] = [clientDemand(one), clientDemand(owner)];
  return demand !== undefined && least !== undefined && demand > least;
}

/** How much a server that terminates TLS asks of its clients; undefined for TLS that is passed through: its backend decides. */
function clientDemand({ server, closed }: Unplaced): number | undefined {
  if (closed !== undefined) return 3;
  if (isPassthrough(server)) return undefined;
  const mode = server.tls?.mode;
  if (mode === 'MUTUAL' || mode === 'ISTIO_MUTUAL') return 2;
  return mode === 'OPTIONAL_MUTUAL' ? 1 : 0;
}

function hostKey(bind: string | undefined, port: number, host: string): string {
  return `${bind ?? ''}~${port} ${host}`;
}

/** The hosts of a TLS server that another server of the port serves. */
function lostHosts(one: Unplaced, bind: string | undefined, owners: HostOwners): ReadonlyMap<string, Unplaced> {
  const lost = new Map<string, Unplaced>();
  if (kindOf(one.server) !== 'tls') return lost;
  for (const host of one.server.hosts) {
    const owner = owners.get(hostKey(bind, one.port, dnsName(host)));
    if (owner !== undefined && owner !== one) lost.set(host, owner);
  }
  return lost;
}

function lostText(one: Unplaced, lost: ReadonlyMap<string, Unplaced>): string | undefined {
  const [first] = lost.entries();
  if (first === undefined) return undefined;
  const [host, owner] = first;
  const more = lost.size > 1 ? ` and ${lost.size - 1} more hosts are` : ' is';
  const [own, other] = [clientDemand(one) ?? 0, clientDemand(owner) ?? 0];
  const less = other < own ? ', which asks less of its clients' : '';
  return `${dnsName(host)}${more} served by ${gatewayName(owner.gateway)} on port ${one.port}${less}`;
}

interface PortInMaking extends GatewayPort {
  readonly servers: GatewayServer[];
  /** Route configurations of its TLS servers, and the objects that they are of. */
  readonly routeNames: Map<string, Config<Gateway>>;
}

/** Puts a server on a port, or says why it cannot be there. The first on a port decides what may join it. */
function add(
  ports: Map<string, PortInMaking>,
  one: Unplaced,
  bind: string | undefined,
  lost: ReadonlyMap<string, Unplaced>,
): string | undefined {
  const { gateway, server, port, closed } = one;
  const kind = kindOf(server);
  const key = `${bind ?? ''}~${port}`;
  const merged: PortInMaking = ports.get(key) ?? {
    port,
    bind,
    kind,
    servers: [],
    routeNames: new Map(),
  };
  if (merged.servers.length > 0 && (merged.kind !== kind || kind === 'tcp')) {
    return `port ${port} is taken by a ${merged.kind} server of ${gatewayName(merged.servers[0]!.gateway)}`;
  }
  const hosts = lost.size === 0 ? server.hosts : server.hosts.filter((host) => !lost.has(host));
  if (hosts.length === 0) return lostText(one, lost);
  const routeName = closed === undefined ? routeNameOf(server, gateway, port, bind) : undefined;
  if (kind === 'tls') {
    const other = routeName === undefined ? undefined : merged.routeNames.get(routeName);
    if (other !== undefined) {
      return `an HTTPS server of ${gatewayName(other)} has its routes under the same name: give the port another name`;
    }
    if (routeName !== undefined) merged.routeNames.set(routeName, gateway);
  }
  merged.servers.push({ ...one, hosts, ...(routeName !== undefined && { routeName }) });
  ports.set(key, merged);
  return undefined;
}

function kindOf({ port, tls }: Server): ServerKind {
  if (port.protocol === 'HTTPS' || port.protocol === 'TLS') return 'tls';
  if (port.protocol === 'HTTP' || port.protocol === 'HTTP2' || port.protocol.startsWith('GRPC')) return 'http';
  return tls === undefined ? 'tcp' : 'tls';
}

/** Whether requests are seen: TLS that is passed through, or ended for plain TCP behind it, has none. */
function routeNameOf(
  server: Server,
  gateway: Config<Gateway>,
  port: number,
  bind: string | undefined,
): string | undefined {
  if (kindOf(server) === 'http') return gatewayHttpRouteName(port, bind);
  if (server.port.protocol !== 'HTTPS' || isPassthrough(server)) return undefined;
  return gatewayHttpsRouteName(port, server.port.name, gateway, bind);
}

export function isPassthrough(server: Server): boolean {
  return server.tls === undefined || server.tls.mode === 'PASSTHROUGH' || server.tls.mode === 'AUTO_PASSTHROUGH';
}

/** `shop/reviews.example.com` → `reviews.example.com`. */
export function dnsName(serverHost: string): string {
  return serverHost.slice(serverHost.indexOf('/') + 1);
}

/** Label of a service whose ports are not to be translated to those of the gateways behind it. */
const keepPortLabel = 'experimental.istio.io/disable-gateway-port-translation';

/**
 * The ports of the pod: a server names a port of the gateway's service, which may lead to another one. An object that
 * names its services has no port without one of them; others listen on the port itself where no service leads elsewhere.
 */
function proxyPorts(
  server: Server,
  gateway: Config<Gateway>,
  named: readonly string[] | undefined,
  targets: ReadonlyMap<number, readonly ServiceTarget[]>,
): readonly number[] {
  const { number } = server.port;
  if (server.bind !== undefined && isUnixSocket(server.bind)) return [number];
  const leads = (target: ServiceTarget): boolean =>
    named === undefined
      ? booleanOf(target.service.labels[keepPortLabel] ?? '') !== true
      : isGatewayService(target, gateway, named);
  const ports = (targets.get(number) ?? []).filter(leads).map(({ targetPort }) => targetPort);
  return ports.length === 0 && named === undefined ? [number] : [...new Set(ports)];
}

function byRoute(servers: readonly GatewayServer[]): Map<string, GatewayServer[]> {
  const routes = new Map<string, GatewayServer[]>();
  for (const server of servers) {
    if (server.routeName === undefined) continue;
    const same = routes.get(server.routeName);
    if (same === undefined) routes.set(server.routeName, [server]);
    else same.push(server);
  }
  return routes;
}
