/** The listeners of a gateway: one for each port of its merged servers (spec/discovery.md §8.7). */
import { create } from '@bufbuild/protobuf';
import { type FilterChain, FilterChainSchema } from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import { ListenerSchema } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import { type ConfigKey, configKeyOf } from '../../model/config.ts';
import { isHostWithin } from '../../model/hostname.ts';
import type { ProxyShape } from '../../model/proxy-shape.ts';
import type { PushContext } from '../../model/push-context.ts';
import type { ResolvedVirtualService } from '../../model/resolved-rules.ts';
import { isUnixSocket, wildcardAddress } from '../address.ts';
import { duration } from '../duration.ts';
import {
  dnsName,
  type GatewayPort,
  type GatewayServer,
  gatewayName,
  isPassthrough,
  mergeGateways,
} from '../gateway/merge.ts';
import { matchingHosts } from '../gateway/virtual-hosts.ts';
import { listenerName, sniName } from '../names.ts';
import { type Reach, reachOf } from '../reach.ts';
import { namedResource, type Resource } from '../resource.ts';
import { chainMatch, routeFilters } from './filter-chain.ts';
import { httpConnectionManager } from './http-connection-manager.ts';
import { tlsInspector } from './inspection.ts';
import { type L4Route, tcpRoutes, tlsRoutes } from './l4-routes.ts';
import { makeListener } from './listener.ts';
import { tcpFilters } from './tcp-proxy.ts';
import { downstreamTls, httpAlpn } from './tls-context.ts';

/** A client that does not finish its TLS handshake in this time is cut off. */
const handshakeTimeoutMs = 15_000;

interface GatewayContext {
  readonly shape: ProxyShape;
  readonly push: PushContext;
  readonly reach: Reach;
  /** Of the listener, for statistics. */
  readonly listener: string;
}

/** A port without a single chain (TLS passed through, but no route says where) gets no listener. */
export function gatewayListeners(shape: ProxyShape, push: PushContext): Resource[] {
  const reach = reachOf(shape, push);
  return mergeGateways(shape, push).ports.flatMap((merged) => {
    const bind = merged.bind ?? wildcardAddress(shape.ipFamily);
    const name = listenerName(bind, merged.port);
    const filterChains = chainsOf(merged, { shape, push, reach, listener: name });
    if (filterChains.length === 0) return [];
    const listener = makeListener({
      name,
      direction: 'outbound',
      bind,
      port: merged.port,
      bindToPort: true,
      filterChains,
      listenerFilters: merged.kind === 'tls' ? [tlsInspector()] : [],
      mesh: push.mesh,
    });
    return [namedResource(ListenerSchema, listener, dependencies(merged, shape, push))];
  });
}

function chainsOf(merged: GatewayPort, context: GatewayContext): FilterChain[] {
  const [first] = merged.servers;
  if (merged.kind === 'http') return [create(FilterChainSchema, { filters: [manager(first!, context)] })];
  const chains = merged.servers.flatMap((server) => serverChains(server, context));
  return uniqueByMatch(chains);
}

function serverChains(server: GatewayServer, context: GatewayContext): FilterChain[] {
  const { tls } = server.server;
  if (server.routeName !== undefined) return [terminated(server, manager(server, context), httpAlpn)];
  if (tls?.mode === 'AUTO_PASSTHROUGH') return autoPassthrough(server, context);
  const services = boundServices(server, context);
  const l4 = {
    shape: context.shape,
    reach: context.reach,
    gateways: new Set([gatewayName(server.gateway)]),
    port: server.server.port.number,
  };
  if (tls !== undefined && !isPassthrough(server.server)) {
    return tcpRoutes(services, l4).map((route) => ({
      ...routeChain(route, server, context),
      ...tlsParts(server, []),
      filterChainMatch: terminated(server, undefined, []).filterChainMatch,
    }));
  }
  const routes =
    server.server.tls === undefined && server.server.port.protocol !== 'TLS' && server.server.port.protocol !== 'HTTPS'
      ? tcpRoutes(services, l4)
      : tlsRoutes(services, server.hosts.map(dnsName), l4);
  return routes.map((route) => routeChain(route, server, context));
}

function manager(
  server: GatewayServer,
  { push, shape, listener }: GatewayContext,
): ReturnType<typeof httpConnectionManager> {
  return httpConnectionManager({
    direction: 'gateway',
    listener,
    routes: server.routeName!,
    mesh: push.mesh,
    grpcWeb: true,
    http10: shape.metadata.HTTP10 === '1',
    absoluteUrl: isUnixSocket(server.server.bind ?? ''),
  });
}

/** TLS that ends here: SNI chooses the chain. */
function terminated(
  server: GatewayServer,
  filter: ReturnType<typeof httpConnectionManager> | undefined,
  alpn: readonly string[],
): FilterChain {
  const hosts = server.hosts.map(dnsName);
  const match = chainMatch({ serverNames: hosts.includes('*') ? [] : hosts });
  return create(FilterChainSchema, {
    ...(match && { filterChainMatch: match }),
    filters: filter ? [filter] : [],
    ...tlsParts(server, alpn),
  });
}

function tlsParts(
  server: GatewayServer,
  alpn: readonly string[],
): Pick<FilterChain, 'transportSocket' | 'transportSocketConnectTimeout'> {
  return {
    transportSocket: downstreamTls(server.server.tls!, alpn),
    transportSocketConnectTimeout: duration(handshakeTimeoutMs),
  };
}

function routeChain(route: L4Route, server: GatewayServer, { shape, reach, push }: GatewayContext): FilterChain {
  const match = chainMatch(route);
  return create(FilterChainSchema, {
    ...(match && { filterChainMatch: match }),
    filters: routeFilters(
      { ...route, port: server.server.port.number, protocol: server.server.port.protocol },
      shape,
      reach,
      push.mesh,
    ),
  });
}

/** Every service port and subset under its SNI name: TLS between networks goes through untouched. */
function autoPassthrough(server: GatewayServer, { reach, push }: GatewayContext): FilterChain[] {
  const hosts = server.hosts.map(dnsName);
  return reach.services
    .filter((service) => !service.meshExternal && hosts.some((host) => isHostWithin(service.hostname, host)))
    .flatMap((service) => {
      const subsets = reach.destinationRuleFor(service)?.config.spec.subsets ?? [];
      const names = service.ports
        .filter((port) => port.protocol !== 'UDP')
        .flatMap((port) =>
          ['', ...subsets.map(({ name }) => name)].map((name) => sniName(port.number, name, service.hostname)),
        );
      return names.map((name) =>
        create(FilterChainSchema, {
          filterChainMatch: { serverNames: [name] },
          filters: tcpFilters({ destinations: [{ cluster: name, weight: 0 }], mesh: push.mesh }),
        }),
      );
    });
}

/** Virtual services of the server's gateway that share a host with it. */
function boundServices(server: GatewayServer, { push, shape }: GatewayContext): readonly ResolvedVirtualService[] {
  return push
    .virtualServicesFor(gatewayName(server.gateway), shape.configNamespace)
    .filter((service) => matchingHosts(server, service).length > 0);
}

/** Envoy refuses a listener with two chains of one match: the older stays. */
function uniqueByMatch(chains: readonly FilterChain[]): FilterChain[] {
  const seen = new Set<string>();
  return chains.filter(({ filterChainMatch }) => {
    const key = JSON.stringify(filterChainMatch ?? null);
    return !seen.has(key) && seen.add(key);
  });
}

function dependencies(merged: GatewayPort, shape: ProxyShape, push: PushContext): ConfigKey[] {
  const gateways = [...new Set(merged.servers.map(({ gateway }) => gateway))];
  const keys = gateways.map(configKeyOf);
  if (merged.kind === 'http') return keys;
  const services = gateways.flatMap((gateway) => push.virtualServicesFor(gatewayName(gateway), shape.configNamespace));
  return [...keys, ...services.flatMap(({ origins }) => origins)];
}
