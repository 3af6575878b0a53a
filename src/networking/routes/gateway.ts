import { create } from '@bufbuild/protobuf';
import { HeaderValueOptionSchema } from '../../gen/envoy/config/core/v3/base_pb.ts';
import {
  type Route,
  type VirtualHost,
  VirtualHost_TlsRequirementType,
} from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import { RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { type ConfigKey, compareText, configKeyOf } from '../../model/config/config.ts';
import { mostSpecificKey } from '../../model/fields/hostname.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import { precedenceOrderFor } from '../../model/push-context/virtual-service-order.ts';
import { http3Advertisement, http3Offer } from '../gateway/http3.ts';
import { type GatewayServer, gatewayOrigin, type MergedGateways } from '../gateway/merge-gateways.ts';
import { dnsName, gatewayName, type ServerOnPort } from '../gateway/placed-server.ts';
import { servedVirtualServices } from '../gateway/server-hosts.ts';
import { type Origin, virtualServiceOrigins, withOrigins } from '../inputs/message-origin.ts';
import { bracketIpv6 } from '../messages/address.ts';
import { type EnvoyResource, namedResource } from '../messages/resource.ts';
import type { ProxyReach } from '../traffic/reach.ts';
import { virtualHostName } from '../traffic/resource-names.ts';
import { isCatchAll } from './translate/match.ts';
import { misdirectedHost } from './translate/misdirected-host.ts';
import { buildVirtualServiceRoutesInSteps, type RouteContext } from './translate/route.ts';
import { routeConfiguration, virtualHost } from './translate/route-configuration.ts';
import { matchedPorts, serverText } from './translate/server-conditions.ts';
import type { WithDependencies } from './translate/with-dependencies.ts';

/** Returns no virtual hosts for the name of a deleted Gateway. Yields, because a configuration may have thousands of routes. */
export function* buildingGatewayRoutes(
  name: string,
  mergedGateways: MergedGateways,
  shape: ProxyShape,
  push: PushContext,
  reach: ProxyReach,
): Generator<undefined, EnvoyResource> {
  const servers = mergedGateways.routes.get(name);
  const emptyResult: WithDependencies<VirtualHost[]> = { value: [], dependsOn: [] };
  const hosts = servers ? yield* virtualHosts(servers, shape, push, reach) : emptyResult;
  const configuration = routeConfiguration(name, hosts.value);
  // Each HTTPS server has its own route configuration.
  const [server] = servers ?? [];
  if (server !== undefined && http3Offer(server, shape, push)?.ports !== undefined) {
    const header = { key: 'alt-svc', value: http3Advertisement(server.server.port.number) };
    configuration.responseHeadersToAdd.push(create(HeaderValueOptionSchema, { header }));
  }
  return namedResource(RouteConfigurationSchema, configuration, hosts.dependsOn);
}

interface HostPlan {
  /**
   * For each VirtualService of the host, its servers by {@link serverText}. Servers with equal texts have equal routes, so the map contains only one
   * of them.
   */
  readonly virtualServices: Map<ResolvedVirtualService, Map<string, GatewayServer>>;
  readonly servers: Set<GatewayServer>;
  httpsRedirect: boolean;
}

function* virtualHosts(
  servers: readonly GatewayServer[],
  shape: ProxyShape,
  push: PushContext,
  reach: ProxyReach,
): Generator<undefined, WithDependencies<VirtualHost[]>> {
  const { port } = servers[0]!;
  const plannedHosts = yield* planHosts(servers, shape, push);
  const dependsOn: ConfigKey[] = servers.map(({ gateway }) => configKeyOf(gateway));
  const { served, misdirected } = omitMisdirected(plannedHosts, servers);
  const plans = groupEqualPlans(served);
  yield undefined;
  const builtHosts: VirtualHost[] = [];
  for (const { names, plan } of plans) {
    const routes = yield* routesOf(plan, shape, push, reach);
    for (const key of routes.dependsOn) dependsOn.push(key);
    const host = virtualHost(
      virtualHostName(names[0]!, [...plan.servers][0]!.server.port.number),
      names.map(bracketIpv6),
      routes.value,
      plan.httpsRedirect ? VirtualHost_TlsRequirementType.ALL : undefined,
    );
    builtHosts.push(withOrigins(host, originsOfPlan(plan)));
    yield undefined;
  }
  if (misdirected.size > 0) {
    const domains = [...misdirected.keys()].flatMap((host) => sameNameEndings.map((ending) => host + ending));
    const owners = [...new Set(misdirected.values())];
    dependsOn.push(...owners.map(({ gateway }) => configKeyOf(gateway)));
    const origins = [...servers, ...owners].map(gatewayOrigin);
    builtHosts.push(withOrigins(misdirectedHost(`misdirected:${port}`, domains), origins));
  }
  const hosts = builtHosts
    .filter((host) => host.routes.length > 0 || host.requireTls === VirtualHost_TlsRequirementType.ALL)
    .sort((a, b) => compareText(a.name, b.name));
  // Without any virtual host, Envoy also returns 404, but statistics and access logs do not show the reason.
  if (hosts.length > 0) return { value: hosts, dependsOn };
  return { value: [withOrigins(virtualHost(`blackhole:${port}`, ['*'], []), servers.map(gatewayOrigin))], dependsOn };
}

/** Removes hosts for which another server of the port has stricter TLS requirements. */
function omitMisdirected(
  plansByHost: ReadonlyMap<string, HostPlan>,
  servers: readonly GatewayServer[],
): { readonly served: ReadonlyMap<string, HostPlan>; readonly misdirected: ReadonlyMap<string, ServerOnPort> } {
  const misdirected = new Map(servers.flatMap((server) => [...(server.misdirected ?? [])]));
  if (misdirected.size === 0) return { served: plansByHost, misdirected };
  const allHosts = new Set([...misdirected.keys(), ...servers.flatMap(({ hosts }) => hosts.map(dnsName))]);
  const servedHosts = [...plansByHost].filter(([host]) => !misdirected.has(mostSpecificKey(host, allHosts)!));
  return { served: new Map(servedHosts), misdirected };
}

/**
 * Endings that a client may add to a host without changing its meaning: root dot and empty port. Envoy does not
 * remove them.
 */
const sameNameEndings: readonly string[] = ['', '.', ':', '.:'];

function originsOfPlan({ servers, virtualServices }: HostPlan): readonly Origin[] {
  return [...[...servers].map(gatewayOrigin), ...[...virtualServices.keys()].flatMap(virtualServiceOrigins)];
}

function* planHosts(
  servers: readonly GatewayServer[],
  shape: ProxyShape,
  push: PushContext,
): Generator<undefined, Map<string, HostPlan>> {
  const plans = new Map<string, HostPlan>();
  const hostPlanOf = (host: string): HostPlan => {
    const plan = plans.get(host) ?? { virtualServices: new Map(), servers: new Set(), httpsRedirect: false };
    plans.set(host, plan);
    return plan;
  };
  const seenTexts = new Set<string>();
  const isFirstOccurrence = (text: string): boolean => {
    if (seenTexts.has(text)) return false;
    seenTexts.add(text);
    return true;
  };
  for (const server of servers) {
    yield undefined;
    const redirect = server.server.tls?.httpsRedirect === true;
    const name = gatewayName(server.gateway);
    const virtualServices = push.virtualServicesFor(name, shape.configNamespace);
    const { number } = server.server.port;
    const port = matchedPorts(virtualServices).has(number) ? number : '';
    // If an older server of the Gateway has the host, this server adds only routes that match its port, or a redirect.
    const hosts = server.hosts.filter((host) => isFirstOccurrence(`${name} ${redirect} ${port} ${host}`));
    for (const servedRule of servedVirtualServices(server, virtualServices, hosts)) {
      const text = serverText(servedRule.virtualService, server);
      for (const host of servedRule.hosts) {
        const plan = hostPlanOf(host);
        const virtualServiceHosts = plan.virtualServices.get(servedRule.virtualService);
        if (virtualServiceHosts === undefined)
          plan.virtualServices.set(servedRule.virtualService, new Map([[text, server]]));
        else if (!virtualServiceHosts.has(text)) virtualServiceHosts.set(text, server);
        plan.httpsRedirect ||= redirect;
        plan.servers.add(server);
      }
    }
    if (!redirect) continue;
    for (const host of hosts) {
      const plan = hostPlanOf(dnsName(host));
      plan.httpsRedirect = true;
      plan.servers.add(server);
    }
  }
  return plans;
}

/** Groups hosts with equal routes. A group's name consists of its alphabetically first host and the server's port. */
function groupEqualPlans(plans: ReadonlyMap<string, HostPlan>): { names: string[]; plan: HostPlan }[] {
  const ids = new Map<unknown, number>();
  const idOf = (value: unknown): number => {
    const id = ids.get(value) ?? ids.size;
    ids.set(value, id);
    return id;
  };
  const groups = new Map<string, { names: string[]; plan: HostPlan }>();
  for (const [host, plan] of [...plans].sort(([a], [b]) => compareText(a, b))) {
    const routes = [...plan.virtualServices].flatMap(([service, virtualServiceHosts]) => [
      service,
      ...[...virtualServiceHosts.values()].flatMap(({ gateway, server }) => [gateway, server.port.number]),
    ]);
    const key = [plan.httpsRedirect, ...routes.map(idOf)].join();
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { names: [host], plan });
    else group.names.push(host);
  }
  return [...groups.values()];
}

/** Catch-all routes are last. */
function* routesOf(
  plan: HostPlan,
  shape: ProxyShape,
  push: PushContext,
  reach: ProxyReach,
): Generator<undefined, WithDependencies<Route[]>> {
  const comparePrecedence = precedenceOrderFor(shape.configNamespace);
  const routes: Route[] = [];
  const dependsOn: ConfigKey[] = [];
  for (const [virtualService, servers] of [...plan.virtualServices].sort(([a], [b]) => comparePrecedence(a, b))) {
    const contexts = [...servers.values()].map(
      ({ gateway, server }): RouteContext => ({
        shape,
        gateway: gatewayName(gateway),
        listenerPort: server.port.number,
        reach,
        meshRetry: push.mesh.defaultHttpRetryPolicy,
      }),
    );
    const translatedRoutes = yield* buildVirtualServiceRoutesInSteps(virtualService, contexts);
    for (const route of translatedRoutes.value) routes.push(route);
    for (const key of translatedRoutes.dependsOn) dependsOn.push(key);
    yield undefined;
  }
  const catchAll = routes.filter((route) => isCatchAll(route.match!));
  if (catchAll.length === 0) return { value: routes, dependsOn };
  return { value: [...routes.filter((route) => !isCatchAll(route.match!)), catchAll[0]!], dependsOn };
}
