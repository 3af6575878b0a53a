/**
 * All Gateway objects of a proxy as one list of ports (spec/discovery.md §8.7). Listeners, routes and clusters are made
 * from it.
 */
import { type Config, configKeyOf, configKeyText } from '../../model/config/config.ts';
import { booleanOf } from '../../model/fields/go-boolean.ts';
import type { Gateway, Server } from '../../model/kinds/gateway.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { gatewayServicesOf, isGatewayService } from '../../model/push-context/gateway-index.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { ServiceTarget } from '../../model/services/service.ts';
import type { Origin } from '../inputs/message-origin.ts';
import { isUnixSocket } from '../messages/address.ts';
import { isPrivilegedPort } from '../traffic/reserved-ports.ts';
import { gatewayHttpRouteName, gatewayHttpsRouteName } from '../traffic/resource-names.ts';
import { unenforceableTls } from '../traffic/unenforceable-tls.ts';

/** One server of a Gateway object on one port of the proxy. */
export interface GatewayServer {
  readonly gateway: Config<Gateway>;
  readonly server: Server;
  /** The port that the proxy listens on. */
  readonly port: number;
  /** As written (`namespace/host`), without those that an older TLS server of the port has. */
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
  /** Servers that are not in force, and why: shown to whoever wrote them. */
  readonly rejected: readonly string[];
}

/** The server as the Gateway object has it, or as it was written where that object was made of another. */
export function gatewayOrigin({ gateway, server }: GatewayServer): Origin {
  const index = gateway.spec.servers.indexOf(server);
  const made = gateway.madeOf?.[`servers[${index}]`]?.[0];
  return made ?? { key: configKeyOf(gateway), path: ['spec', 'servers', index] };
}

/** Name of a Gateway object as virtual services refer to it. */
export function gatewayName(gateway: Config<Gateway>): string {
  return `${gateway.namespace}/${gateway.name}`;
}

export function mergeGateways(shape: ProxyShape, push: PushContext): MergedGateways {
  const ports = new Map<string, GatewayPort & { servers: GatewayServer[] }>();
  const rejected: string[] = [];
  for (const gateway of push.gatewaysFor(shape)) {
    for (const server of gateway.spec.servers) {
      for (const port of proxyPorts(server, gateway, shape)) {
        const closed = server.tls && unenforceableTls(server.tls, shape);
        const notThere = isPrivilegedPort(port, shape) ? 'the pod may not bind ports below 1024' : undefined;
        const reason = notThere ?? add(ports, { gateway, server, port, ...(closed && { closed }) }) ?? closed;
        if (reason)
          rejected.push(`${configKeyText(gateway)} server ${server.port.name || server.port.number}: ${reason}`);
      }
    }
  }
  const all = [...ports.values()].flatMap((merged) => merged.servers);
  return {
    ports: [...ports.values()],
    routes: byRoute(all),
    hasAutoPassthrough: all.some(({ server }) => server.tls?.mode === 'AUTO_PASSTHROUGH'),
    rejected,
  };
}

/** Puts a server on a port, or says why it cannot be there. The first on a port decides what may join it. */
function add(
  ports: Map<string, GatewayPort & { servers: GatewayServer[] }>,
  one: Omit<GatewayServer, 'hosts' | 'routeName'>,
): string | undefined {
  const { gateway, server, port, closed } = one;
  const bind = server.bind || undefined;
  const kind = kindOf(server);
  const key = `${bind ?? ''}~${port}`;
  const merged = ports.get(key) ?? { port, bind, kind, servers: [] };
  if (merged.servers.length > 0 && (merged.kind !== kind || kind === 'tcp')) {
    return `port ${port} is taken by a ${merged.kind} server of ${gatewayName(merged.servers[0]!.gateway)}`;
  }
  const hosts = kind === 'tls' ? hostsLeft(server, merged.servers) : server.hosts;
  if (hosts.length === 0) return `all its hosts are taken on port ${port}`;
  const routeName = closed === undefined ? routeNameOf(server, gateway, port, bind) : undefined;
  if (kind === 'tls' && routeName !== undefined && merged.servers.some((other) => other.routeName === routeName)) {
    return `another HTTPS server of the object has the port name ${JSON.stringify(server.port.name)}`;
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

/** SNI chooses among the TLS servers of a port, so each host may be there once. */
function hostsLeft(server: Server, others: readonly GatewayServer[]): readonly string[] {
  const taken = new Set(others.flatMap((other) => other.hosts.map(dnsName)));
  return server.hosts.filter((host) => !taken.has(dnsName(host)));
}

/** `shop/reviews.example.com` → `reviews.example.com`. */
export function dnsName(serverHost: string): string {
  return serverHost.slice(serverHost.indexOf('/') + 1);
}

/** Of a service whose ports are not those of the gateways behind it. */
const keepPortLabel = 'experimental.istio.io/disable-gateway-port-translation';

/**
 * The ports of the pod: a server names a port of the gateway's service, which may lead to another one. An object that
 * names its services has no port without one of them; others listen on the port itself where no service leads elsewhere.
 */
function proxyPorts(server: Server, gateway: Config<Gateway>, shape: ProxyShape): readonly number[] {
  const { number } = server.port;
  if (server.bind !== undefined && isUnixSocket(server.bind)) return [number];
  const named = gatewayServicesOf(gateway);
  const leads = (target: ServiceTarget): boolean =>
    named === undefined
      ? booleanOf(target.service.labels[keepPortLabel] ?? '') !== true
      : isGatewayService(target, gateway, named);
  const targets = shape.serviceTargets
    .filter((target) => target.port.number === number && leads(target))
    .map(({ targetPort }) => targetPort);
  return targets.length === 0 && named === undefined ? [number] : [...new Set(targets)];
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
