/**
 * All Gateway objects of a proxy as one list of ports (spec/discovery.md §8.7). Listeners, routes and clusters are made
 * from it.
 */
import { onceFor, onceForPair } from '../../model/collections/once-for.ts';
import { WeakValues } from '../../model/collections/weak-values.ts';
import { type Config, configKeyOf, configKeyText } from '../../model/config/config.ts';
import { booleanOf } from '../../model/fields/go-boolean.ts';
import type { Gateway, Server } from '../../model/kinds/gateway/gateway.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { gatewayServicesOf, isGatewayService } from '../../model/push-context/gateway-index.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { ServiceTarget } from '../../model/services/service.ts';
import type { Origin } from '../inputs/message-origin.ts';
import { isUnixSocket, wildcardAddress } from '../messages/address.ts';
import { isPrivilegedPort } from '../traffic/reserved-ports.ts';
import { gatewayHttpRouteName, gatewayHttpsRouteName } from '../traffic/resource-names.ts';
import { unenforceableTls } from '../traffic/unenforceable-tls.ts';
import { hostOwners } from './host-owners.ts';
import { type HostShare, servedHosts } from './host-shares.ts';
import {
  gatewayName,
  isPassthrough,
  kindOf,
  listenerKey,
  type PlacedServer,
  type ServerKind,
  type ServerOnPort,
} from './placed-server.ts';
import { type MeshTls, TlsRequirements } from './tls-requirements.ts';

/** A server on one port of the proxy, with the hosts that it serves there in one way. */
export interface GatewayServer extends ServerOnPort {
  /** Hosts as written (`namespace/host`), without those that another TLS server of the port serves. */
  readonly hosts: readonly string[];
  /** Set for servers whose requests are routed: HTTP, and HTTPS that ends here. */
  readonly routeName?: string;
  /**
   * Hosts within its wildcards whose own servers require more. Requests for them get 421: over a connection that another SNI led here, they
   * would evade what their server requires.
   */
  readonly misdirected?: ReadonlyMap<string, ServerOnPort>;
}

export interface GatewayPort {
  readonly port: number;
  readonly bind: string | undefined;
  readonly kind: ServerKind;
  /** Oldest first; at least one. */
  readonly servers: readonly GatewayServer[];
}

export interface MergedGateways {
  readonly ports: readonly GatewayPort[];
  /** The servers behind each route configuration. */
  readonly routes: ReadonlyMap<string, readonly GatewayServer[]>;
  readonly hasAutoPassthrough: boolean;
  /** Servers that serve nothing, or not all of their hosts, and why: shown to the author. */
  readonly rejected: readonly string[];
  /** Servers whose hosts overlap with those of servers that require something else, and what applies: shown to the author. */
  readonly overlapping: readonly string[];
}

/** The server as the Gateway object has it, or as it was written where that object was made of another. */
export function gatewayOrigin({ gateway, index }: ServerOnPort): Origin {
  const made = gateway.partOrigins?.[`servers[${index}]`]?.[0];
  return made ?? { key: configKeyOf(gateway), path: ['spec', 'servers', index] };
}

/**
 * Merged once for a shape and the objects that select it: most changes leave both as they are, and each route configuration
 * asks for it. Shapes of which the servers come to the same ports share it, whatever else tells them apart.
 */
export function mergeGateways(shape: ProxyShape, push: Pick<PushContext, 'gatewaysFor' | 'mesh'>): MergedGateways {
  const gateways = push.gatewaysFor(shape);
  const tls = JSON.stringify([push.mesh.tlsDefaults, push.mesh.meshMTLS]);
  const last = lastMerged(gateways, shape);
  if (last.tls !== tls) Object.assign(last, { tls, merged: mergedFor(gateways, shape, push.mesh, tls) });
  return last.merged!;
}

/** The last one for a shape and its objects, and the settings of the mesh that it was merged with. */
const lastMerged = onceForPair((): { tls?: string; merged?: MergedGateways } => ({}));

function mergedFor(gateways: readonly Config<Gateway>[], shape: ProxyShape, mesh: MeshTls, tls: string) {
  const placed = placedServers(gateways, shape);
  const key = [tls, ...placed.map(placeText)].join('\n');
  const known = ofGateways(gateways);
  const same = known.get(key);
  if (same !== undefined) return same;
  const made = merge(placed, mesh);
  known.set(key, made);
  return made;
}

/** Held by the shapes that have them. */
const ofGateways = onceFor((_: readonly Config<Gateway>[]) => new WeakValues<MergedGateways>());

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

function merge(placed: readonly PlacedServer[], mesh: MeshTls): MergedGateways {
  const ports = new Map<string, PortInMaking>();
  const rejected: string[] = [];
  const overlapping: string[] = [];
  const requirements = new TlsRequirements(mesh);
  const owners = hostOwners(placed, requirements);
  for (const place of placed) {
    const { one, notThere } = place;
    const { gateway, server, closed } = one;
    const served = servedHosts(place, owners, requirements);
    const reason = notThere ?? add(ports, place, served.shares) ?? closed ?? served.lost;
    const name = `${configKeyText(gateway)} server ${server.port.name || server.port.number}`;
    if (reason) rejected.push(`${name}: ${reason}`);
    if (notThere === undefined && served.overlap) overlapping.push(`${name}: ${served.overlap}`);
  }
  const all = [...ports.values()].flatMap((merged) => merged.servers);
  return {
    ports: [...ports.values()].map(({ port, bind, kind, servers }) => ({ port, bind, kind, servers })),
    routes: byRoute(all),
    hasAutoPassthrough: all.some(({ server }) => server.tls?.mode === 'AUTO_PASSTHROUGH'),
    rejected,
    overlapping,
  };
}

interface PortInMaking extends GatewayPort {
  readonly servers: GatewayServer[];
  /** Route configurations of its TLS servers, and the objects that they are of. */
  readonly routeNames: Map<string, Config<Gateway>>;
}

/** Puts a server on a port, or says why it cannot be there. The first on a port decides what may join it. */
function add(
  ports: Map<string, PortInMaking>,
  { one, bind }: PlacedServer,
  shares: readonly HostShare[],
): string | undefined {
  const { gateway, server, port } = one;
  const kind = kindOf(server);
  const key = listenerKey(bind, port);
  const merged: PortInMaking = ports.get(key) ?? { port, bind, kind, servers: [], routeNames: new Map() };
  if (merged.servers.length > 0 && (merged.kind !== kind || kind === 'tcp')) {
    return `port ${port} is used by a ${merged.kind} server of ${gatewayName(merged.servers[0]!.gateway)}`;
  }
  for (const { hosts, tls, closed = one.closed, misdirected, suffix } of shares) {
    const routeName = closed === undefined ? routeNameOf(server, gateway, port, bind, suffix) : undefined;
    const other = kind === 'tls' && routeName !== undefined ? merged.routeNames.get(routeName) : undefined;
    if (other !== undefined) {
      return `an HTTPS server of ${gatewayName(other)} has the same port name: rename the port`;
    }
    if (routeName !== undefined) merged.routeNames.set(routeName, gateway);
    merged.servers.push({
      ...one,
      ...(tls && { server: { ...server, tls } }),
      hosts,
      ...(closed !== undefined && { closed }),
      ...(routeName !== undefined && { routeName }),
      ...(misdirected.size > 0 && { misdirected }),
    });
    ports.set(key, merged);
  }
  return undefined;
}

/** Whether requests are seen: TLS that is passed through, or ended for plain TCP behind it, has none. */
function routeNameOf(
  server: Server,
  gateway: Config<Gateway>,
  port: number,
  bind: string | undefined,
  suffix: string,
): string | undefined {
  if (kindOf(server) === 'http') return gatewayHttpRouteName(port, bind);
  if (server.port.protocol !== 'HTTPS' || isPassthrough(server)) return undefined;
  return gatewayHttpsRouteName(port, server.port.name, gateway, bind) + suffix;
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
