/**
 * Merges all Gateway objects of a proxy into a list of ports, from which listeners, routes
 * and clusters are built.
 */
import { memoizeByObject, memoizeByPair } from '../../model/collections/memoize-by-object.ts';
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
  listenerKey,
  type ServerKind,
  type ServerOnPort,
  type ServerPlacement,
  serverKindOf,
} from './placed-server.ts';
import { type MeshTls, TlsRequirements } from './tls-requirements.ts';

export interface GatewayServer extends ServerOnPort {
  /** In the form `namespace/host`, without hosts that another TLS server of the port serves. */
  readonly hosts: readonly string[];
  /** Set for HTTP, and for HTTPS with TLS termination. */
  readonly routeName?: string;
  /**
   * Hosts under the server's wildcards that have their own, stricter servers. Requests for these hosts get 421, because the connection was
   * established for another SNI.
   */
  readonly misdirected?: ReadonlyMap<string, ServerOnPort>;
}

export interface GatewayPort {
  readonly port: number;
  readonly bind: string | undefined;
  readonly kind: ServerKind;
  /** At least one server, oldest first. */
  readonly servers: readonly GatewayServer[];
}

export interface MergedGateways {
  readonly ports: readonly GatewayPort[];
  readonly routes: ReadonlyMap<string, readonly GatewayServer[]>;
  readonly hasAutoPassthrough: boolean;
  /** Messages about servers that serve only some or none of their hosts, with the reason. */
  readonly rejectionMessages: readonly string[];
  /** Messages about servers whose hosts overlap with hosts of stricter servers. They contain the effective settings. */
  readonly overlapMessages: readonly string[];
}

export function gatewayOrigin({ gateway, index }: ServerOnPort): Origin {
  const sourceOrigin = gateway.partOrigins?.[`servers[${index}]`]?.[0];
  return sourceOrigin ?? { key: configKeyOf(gateway), path: ['spec', 'servers', index] };
}

/**
 * Cached by shape and Gateway objects, because most changes affect neither. Shapes with equal ports share the result.
 */
export function mergeGateways(shape: ProxyShape, push: Pick<PushContext, 'gatewaysFor' | 'mesh'>): MergedGateways {
  const gateways = push.gatewaysFor(shape);
  const tls = JSON.stringify([push.mesh.tlsDefaults, push.mesh.meshMTLS]);
  const cachedResult = lastMerged(gateways, shape);
  if (cachedResult.tls !== tls)
    Object.assign(cachedResult, { tls, merged: mergeForShape(gateways, shape, push.mesh, tls) });
  return cachedResult.merged!;
}

const lastMerged = memoizeByPair((): { tls?: string; merged?: MergedGateways } => ({}));

function mergeForShape(gateways: readonly Config<Gateway>[], shape: ProxyShape, mesh: MeshTls, tls: string) {
  const serverPlacements = serverPlacementsOf(gateways, shape);
  const key = [tls, ...serverPlacements.map(placementText)].join('\n');
  const mergedByKey = mergedByGateways(gateways);
  const cachedMerge = mergedByKey.get(key);
  if (cachedMerge !== undefined) return cachedMerge;
  const result = mergeServers(serverPlacements, mesh);
  mergedByKey.set(key, result);
  return result;
}

const mergedByGateways = memoizeByObject((_: readonly Config<Gateway>[]) => new WeakValues<MergedGateways>());

function serverPlacementsOf(gateways: readonly Config<Gateway>[], shape: ProxyShape): readonly ServerPlacement[] {
  const tcpTargets = shape.serviceTargets.filter(({ port }) => port.protocol !== 'UDP');
  const targets = Map.groupBy(tcpTargets, ({ port }) => port.number);
  const serverPlacements = gateways.flatMap((gateway) => {
    const gatewayServices = gatewayServicesOf(gateway);
    return gateway.spec.servers.flatMap((server, index) => {
      const closedReason = server.closedReason ?? (server.tls && unenforceableTls(server.tls, shape));
      return proxyPorts(server, gateway, gatewayServices, targets).map((port) => ({
        serverOnPort: { gateway, server, index, port, ...(closedReason && { closedReason }) },
        bind: server.bind || undefined,
        unavailableReason: isPrivilegedPort(port, shape) ? 'the pod may not bind ports below 1024' : undefined,
      }));
    });
  });
  const portsOnAllAddresses = new Set(
    serverPlacements.filter(({ bind }) => bind === undefined).map(({ serverOnPort }) => serverOnPort.port),
  );
  return serverPlacements.map((server) =>
    portsOnAllAddresses.has(server.serverOnPort.port) && isEveryAddress(server.bind, shape)
      ? { ...server, bind: undefined }
      : server,
  );
}

function isEveryAddress(bind: string | undefined, { ipFamily }: Pick<ProxyShape, 'ipFamily'>): boolean {
  return bind === wildcardAddress(ipFamily) || (ipFamily === 'dual' && bind === wildcardAddress('v6'));
}

function placementText({
  serverOnPort: { gateway, index, port, closedReason = '' },
  bind = '',
  unavailableReason = '',
}: ServerPlacement): string {
  return `${gatewayName(gateway)} ${index} ${bind} ${port} ${closedReason} ${unavailableReason}`;
}

function mergeServers(serverPlacements: readonly ServerPlacement[], mesh: MeshTls): MergedGateways {
  const ports = new Map<string, PortBuilder>();
  const rejectedServers: string[] = [];
  const overlapping: string[] = [];
  const requirements = new TlsRequirements(mesh);
  const owners = hostOwners(serverPlacements, requirements);
  for (const serverPlacement of serverPlacements) {
    const { serverOnPort, unavailableReason } = serverPlacement;
    const { gateway, server, closedReason } = serverOnPort;
    const servedShares = servedHosts(serverPlacement, owners, requirements);
    const reason =
      unavailableReason ??
      addServer(ports, serverPlacement, servedShares.shares) ??
      closedReason ??
      servedShares.lostHostsText;
    const name = `${configKeyText(gateway)} server ${server.port.name || server.port.number}`;
    if (reason) rejectedServers.push(`${name}: ${reason}`);
    if (unavailableReason === undefined && servedShares.overlapText)
      overlapping.push(`${name}: ${servedShares.overlapText}`);
  }
  const allServers = [...ports.values()].flatMap((portBuilder) => portBuilder.servers);
  return {
    ports: [...ports.values()].map(({ port, bind, kind, servers }) => ({ port, bind, kind, servers })),
    routes: groupByRoute(allServers),
    hasAutoPassthrough: allServers.some(({ server }) => server.tls?.mode === 'AUTO_PASSTHROUGH'),
    rejectionMessages: rejectedServers,
    overlapMessages: overlapping,
  };
}

interface PortBuilder extends GatewayPort {
  readonly servers: GatewayServer[];
  readonly routeNames: Map<string, Config<Gateway>>;
}

/**
 * The first server on a port determines which other servers can share the port.
 *
 * @returns why the server cannot be added
 */
function addServer(
  ports: Map<string, PortBuilder>,
  { serverOnPort, bind }: ServerPlacement,
  hostShares: readonly HostShare[],
): string | undefined {
  const { gateway, server, port } = serverOnPort;
  const kind = serverKindOf(server);
  const key = listenerKey(bind, port);
  const portBuilder: PortBuilder = ports.get(key) ?? { port, bind, kind, servers: [], routeNames: new Map() };
  if (portBuilder.servers.length > 0 && (portBuilder.kind !== kind || kind === 'tcp')) {
    return `port ${port} is used by a ${portBuilder.kind} server of ${gatewayName(portBuilder.servers[0]!.gateway)}`;
  }
  for (const { hosts, tls, closedReason = serverOnPort.closedReason, misdirected, suffix } of hostShares) {
    const routeName = closedReason === undefined ? routeNameOf(server, gateway, port, bind, suffix) : undefined;
    const otherGateway = kind === 'tls' && routeName !== undefined ? portBuilder.routeNames.get(routeName) : undefined;
    if (otherGateway !== undefined) {
      return `an HTTPS server of ${gatewayName(otherGateway)} has the same port name: rename the port`;
    }
    if (routeName !== undefined) portBuilder.routeNames.set(routeName, gateway);
    portBuilder.servers.push({
      ...serverOnPort,
      ...(tls && { server: { ...server, tls } }),
      hosts,
      ...(closedReason !== undefined && { closedReason }),
      ...(routeName !== undefined && { routeName }),
      ...(misdirected.size > 0 && { misdirected }),
    });
    ports.set(key, portBuilder);
  }
  return undefined;
}

function routeNameOf(
  server: Server,
  gateway: Config<Gateway>,
  port: number,
  bind: string | undefined,
  suffix: string,
): string | undefined {
  if (serverKindOf(server) === 'http') return gatewayHttpRouteName(port, bind);
  if (server.port.protocol !== 'HTTPS' || isPassthrough(server)) return undefined;
  return gatewayHttpsRouteName(port, server.port.name, gateway, bind) + suffix;
}

/** Label of a service whose ports the gateways use without translation. */
const keepPortLabel = 'experimental.istio.io/disable-gateway-port-translation';

/**
 * Translates a server's port, which is a port of the gateway's Service, to ports of the pod. A port that no Service maps keeps its number. If a
 * Gateway names its Services, only ports that they map are used.
 */
function proxyPorts(
  server: Server,
  gateway: Config<Gateway>,
  serviceNames: readonly string[] | undefined,
  targets: ReadonlyMap<number, readonly ServiceTarget[]>,
): readonly number[] {
  const { number } = server.port;
  if (server.bind !== undefined && isUnixSocket(server.bind)) return [number];
  const isEligibleTarget = (target: ServiceTarget): boolean =>
    serviceNames === undefined
      ? booleanOf(target.service.labels[keepPortLabel] ?? '') !== true
      : isGatewayService(target, gateway, serviceNames);
  const ports = (targets.get(number) ?? []).filter(isEligibleTarget).map(({ targetPort }) => targetPort);
  return ports.length === 0 && serviceNames === undefined ? [number] : [...new Set(ports)];
}

function groupByRoute(servers: readonly GatewayServer[]): Map<string, GatewayServer[]> {
  const routes = new Map<string, GatewayServer[]>();
  for (const server of servers) {
    if (server.routeName === undefined) continue;
    const routeServers = routes.get(server.routeName);
    if (routeServers === undefined) routes.set(server.routeName, [server]);
    else routeServers.push(server);
  }
  return routes;
}
