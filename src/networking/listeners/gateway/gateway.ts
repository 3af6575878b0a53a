import { create } from '@bufbuild/protobuf';
import {
  type Filter,
  type FilterChain,
  FilterChainSchema,
} from '../../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import { ListenerSchema } from '../../../gen/envoy/config/listener/v3/listener_pb.ts';
import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
import { type ConfigKey, configKeyOf } from '../../../model/config/config.ts';
import { HostIndex } from '../../../model/fields/host-index.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import type { Service } from '../../../model/services/service.ts';
import { hasSniCluster } from '../../clusters/outbound.ts';
import { type GatewayPort, type GatewayServer, gatewayOrigin, mergeGateways } from '../../gateway/merge-gateways.ts';
import { dnsName, gatewayName, isPassthrough } from '../../gateway/placed-server.ts';
import { servedVirtualServices } from '../../gateway/server-hosts.ts';
import type { ConnectionContext, ProxyContext } from '../../inputs/connection-context.ts';
import { type Origin, ruleOrigins, serviceOrigin, withOrigins } from '../../inputs/message-origin.ts';
import { policiesOutbound, policyKeys } from '../../inputs/policies.ts';
import { isUnixSocket, wildcardAddress } from '../../messages/address.ts';
import { duration } from '../../messages/protobuf-duration.ts';
import { type EnvoyResource, namedResource } from '../../messages/resource.ts';
import { type ProxyReach, proxyReachOf } from '../../traffic/reach.ts';
import { listenerName, sniName } from '../../traffic/resource-names.ts';
import { type ChainMatch, chainMatch, routeFilters } from '../filter-chain.ts';
import { UsedMatches } from '../free-match.ts';
import { acceptsHttp10 } from '../http10.ts';
import { tlsInspector } from '../inspection.ts';
import { buildListener, dualStackAddresses } from '../listener.ts';
import { requestFilters, tcpFilters } from '../network-filters/index.ts';
import { listenerAccessLogs } from '../observability/access-log.ts';
import { type L4Route, tcpRoutes, tlsRoutes } from '../outbound/l4-routes.ts';
import { proxyProtocol } from '../proxy-protocol.ts';
import { downstreamTls, httpAlpn } from '../tls-context.ts';
import { quicListeners } from './gateway-http3.ts';

interface PortContext {
  readonly connection: ConnectionContext;
  readonly reach: ProxyReach;
  readonly dependsOn: ConfigKey[];
}

/** A filter chain before its match is restricted to connections that older chains do not match. */
interface PlannedChain {
  readonly match: ChainMatch;
  readonly filters: Filter[];
  readonly tls?: Pick<FilterChain, 'transportSocket' | 'transportSocketConnectTimeout'>;
  readonly origins: readonly Origin[];
}

/** A port without filter chains gets no listener (TLS passthrough without routes). */
export function* gatewayListeners(proxy: ProxyContext): Generator<undefined, EnvoyResource[]> {
  const { shape, push, policies } = proxy;
  const reach = proxyReachOf(shape, push);
  const listeners: EnvoyResource[] = [];
  for (const gatewayPort of mergeGateways(shape, push).ports) {
    const { port } = gatewayPort;
    const bind = gatewayPort.bind ?? wildcardAddress(shape.ipFamily);
    const name = listenerName(bind, port);
    const connection: ConnectionContext = { ...proxy, direction: 'gateway', listener: name, port };
    const dependsOn = [...new Set(gatewayPort.servers.map(({ gateway }) => gateway))].map(configKeyOf);
    const filterChains = yield* chainsOf(gatewayPort, { connection, reach, dependsOn });
    if (filterChains.length === 0) continue;
    const listener = buildListener({
      name,
      direction: 'outbound',
      bind,
      port,
      bindToPort: true,
      filterChains,
      listenerFilters: [...proxyProtocol(proxy), ...(gatewayPort.kind === 'tls' ? [tlsInspector()] : [])],
      mesh: push.mesh,
      accessLog: listenerAccessLogs(connection),
      ...(gatewayPort.bind === undefined && { more: dualStackAddresses(shape, port) }),
    });
    listeners.push(
      namedResource(ListenerSchema, listener, [...dependsOn, ...policyKeys(policies)]),
      ...quicListeners(gatewayPort, proxy),
    );
    yield undefined;
  }
  return listeners;
}

const chainsPerStep = 64;

function* chainsOf({ kind, servers }: GatewayPort, context: PortContext): Generator<undefined, FilterChain[]> {
  if (kind === 'http') {
    const filters = routedChain(servers[0]!, context);
    return [withOrigins(create(FilterChainSchema, { filters }), servers.map(gatewayOrigin))];
  }
  const takenMatches = new UsedMatches();
  const plannedChains: PlannedChain[] = [];
  for (const server of servers) {
    for (const chain of serverChains(server, context)) plannedChains.push(chain);
    yield undefined;
  }
  const chains: FilterChain[] = [];
  for (const [index, { match, filters, tls, origins }] of plannedChains.entries()) {
    for (const freeMatch of takenMatches.reserve(match)) {
      const filterChainMatch = chainMatch(freeMatch);
      const chain = create(FilterChainSchema, { ...(filterChainMatch && { filterChainMatch }), filters, ...tls });
      chains.push(withOrigins(chain, origins));
    }
    if (index % chainsPerStep === chainsPerStep - 1) yield undefined;
  }
  return chains;
}

function serverChains(server: GatewayServer, context: PortContext): PlannedChain[] {
  const { tls, port } = server.server;
  const hosts = server.hosts.map(dnsName);
  const serverMatch = { serverNames: hosts.includes('*') ? [] : hosts };
  if (server.closedReason !== undefined) return [{ match: serverMatch, filters: [], origins: [gatewayOrigin(server)] }];
  if (server.routeName !== undefined) {
    const filters = routedChain(server, context);
    return [
      { match: serverMatch, filters, tls: tlsParts(server, httpAlpn, context), origins: [gatewayOrigin(server)] },
    ];
  }
  if (tls?.mode === 'AUTO_PASSTHROUGH') return autoPassthrough(server, context);
  const virtualServices = boundVirtualServices(server, context);
  const l4 = {
    shape: context.connection.shape,
    reach: context.reach,
    gateways: new Set([gatewayName(server.gateway)]),
    port: port.number,
  };
  if (tls !== undefined && !isPassthrough(server.server)) {
    // `tls` routes of a VirtualService apply to TLS passthrough. A TLSRoute at a terminating listener applies to the terminated connection.
    const tlsRouteServices = virtualServices.filter(({ config }) => config.partOrigins !== undefined);
    const chainsByName = tlsRoutes(tlsRouteServices, hosts, l4).map((route) => routeChain(route, server, context));
    const chainsByAddress = tcpRoutes(virtualServices, l4).map((route) => ({
      ...routeChain(route, server, context),
      match: { ...route, ...serverMatch },
    }));
    const terminatedParts = tlsParts(server, [], context);
    return [...chainsByName, ...chainsByAddress].map((chain) => ({ ...chain, tls: terminatedParts }));
  }
  const isPlaintext = tls === undefined && port.protocol !== 'TLS' && port.protocol !== 'HTTPS';
  const routes = isPlaintext ? tcpRoutes(virtualServices, l4) : tlsRoutes(virtualServices, hosts, l4);
  return routes.map((route) => routeChain(route, server, context));
}

function routedChain(server: GatewayServer, { connection }: PortContext): Filter[] {
  return requestFilters(connection, {
    routes: server.routeName!,
    grpcWeb: true,
    http10: acceptsHttp10(connection),
    absoluteUrl: isUnixSocket(server.server.bind ?? ''),
  });
}

function tlsParts(
  server: GatewayServer,
  alpn: readonly string[],
  { connection }: PortContext,
): NonNullable<PlannedChain['tls']> {
  const { gatewayHandshakeTimeoutMs } = connection.push.features;
  return {
    // A server without a valid TLS context has `closedReason` set.
    transportSocket: downstreamTls(server.server.tls!, alpn, connection)!,
    ...(gatewayHandshakeTimeoutMs > 0 && { transportSocketConnectTimeout: duration(gatewayHandshakeTimeoutMs) }),
  };
}

function routeChain(route: L4Route, server: GatewayServer, { connection, reach }: PortContext): PlannedChain {
  const { number, protocol } = server.server.port;
  return {
    match: route,
    filters: routeFilters({ ...route, port: number, protocol }, connection, reach),
    origins: [route.origin, gatewayOrigin(server)],
  };
}

/**
 * Returns a filter chain for each service port and subset with a cluster, matched by its SNI name. The gateway does not terminate TLS, so only the
 * backend can identify clients. The gateway's own policies would reject all clients or none, and are not applied.
 */
function autoPassthrough(server: GatewayServer, { connection, reach }: PortContext): PlannedChain[] {
  const { shape, push, policies } = connection;
  const outboundConnection: ConnectionContext = { ...connection, policies: policiesOutbound(policies) };
  return servicesWithin(server.hosts.map(dnsName), reach.services).flatMap((service) => {
    const rule = reach.destinationRuleFor(service);
    const subsets = ['', ...(rule?.config.spec.subsets ?? []).map(({ name }) => name)];
    const origins = [gatewayOrigin(server), ...serviceOrigin(service), ...ruleOrigins(rule)];
    return service.ports
      .filter((port) => port.protocol !== 'UDP')
      .flatMap((port) =>
        subsets
          .filter((subset) => hasSniCluster({ service, port, subset, rule }, shape, push))
          .map((subset) => sniName(port.number, subset, service.hostname)),
      )
      .map((name) => ({
        match: { serverNames: [name] },
        filters: tcpFilters(outboundConnection, { destinations: [{ cluster: name, weight: 0 }] }),
        origins,
      }));
  });
}

const passedThroughByHost = memoizeByObject(
  (services: readonly Service[]) => new HostIndex(services.filter(isMeshExternalHost), ({ hostname }) => [hostname]),
);

function servicesWithin(hosts: readonly string[], services: readonly Service[]): readonly Service[] {
  const index = passedThroughByHost(services);
  // A host name overlaps with a wildcard only if the wildcard contains it.
  const indexByService = new Map(
    hosts.flatMap((host) => index.overlappingEntries(host).map(({ item, itemIndex }) => [item, itemIndex])),
  );
  return [...indexByService].sort(([, a], [, b]) => a - b).map(([service]) => service);
}

/** Excludes wildcard hosts: Envoy supports wildcards only at the start of server names, but an SNI name ends with the host. */
function isMeshExternalHost({ meshExternal, hostname }: Service): boolean {
  return !meshExternal && !hostname.startsWith('*');
}

function boundVirtualServices(server: GatewayServer, { connection, dependsOn }: PortContext): ResolvedVirtualService[] {
  const { push, shape } = connection;
  const boundServices = push.virtualServicesFor(gatewayName(server.gateway), shape.configNamespace);
  const servedServices = servedVirtualServices(server, boundServices).map(({ virtualService }) => virtualService);
  dependsOn.push(...servedServices.flatMap(({ origins }) => origins));
  return servedServices;
}
