/** Route configurations of a gateway (spec/discovery.md §8.7, virtual hosts). */
import { create } from '@bufbuild/protobuf';
import { HeaderValueOptionSchema } from '../../gen/envoy/config/core/v3/base_pb.ts';
import {
  type Route,
  type VirtualHost,
  VirtualHost_TlsRequirementType,
} from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import { RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { type ConfigKey, compareText, configKeyOf } from '../../model/config/config.ts';
import { mostSpecific } from '../../model/fields/hostname.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import { byHolding } from '../../model/push-context/virtual-service-order.ts';
import { http3Advertisement, http3Offer } from '../gateway/http3.ts';
import { type GatewayServer, gatewayOrigin, type MergedGateways } from '../gateway/merge-gateways.ts';
import { dnsName, gatewayName, type ServerOnPort } from '../gateway/placed-server.ts';
import { takenServices } from '../gateway/server-hosts.ts';
import { type Origin, virtualServiceOrigins, withOrigins } from '../inputs/message-origin.ts';
import { bracketed } from '../messages/address.ts';
import { namedResource, type Resource } from '../messages/resource.ts';
import type { Reach } from '../traffic/reach.ts';
import { virtualHostName } from '../traffic/resource-names.ts';
import { isCatchAll } from './match.ts';
import { misdirectedHost } from './misdirected-host.ts';
import { buildingVirtualServiceRoutes, type MadeRoutes, type RouteContext } from './route.ts';
import { routeConfiguration, virtualHost } from './route-configuration.ts';
import { portsThatCount, serverText } from './server-conditions.ts';

/** The configuration of a name; one without virtual hosts when its gateway is gone. With rests: it may have thousands of routes. */
export function* buildingGatewayRoutes(
  name: string,
  merged: MergedGateways,
  shape: ProxyShape,
  push: PushContext,
  reach: Reach,
): Generator<undefined, Resource> {
  const servers = merged.routes.get(name);
  const dependsOn: ConfigKey[] = [];
  const hosts = servers ? yield* virtualHosts(servers, shape, push, reach, dependsOn) : [];
  const configuration = routeConfiguration(name, hosts);
  // Servers of HTTPS have a route configuration each.
  const [server] = servers ?? [];
  if (server !== undefined && http3Offer(server, shape, push)?.ports !== undefined) {
    const header = { key: 'alt-svc', value: http3Advertisement(server.server.port.number) };
    configuration.responseHeadersToAdd.push(create(HeaderValueOptionSchema, { header }));
  }
  return namedResource(RouteConfigurationSchema, configuration, dependsOn);
}

interface HostPlan {
  /** A virtual service with the servers through which it takes the host: of those that it does not tell apart the first. */
  readonly services: Map<ResolvedVirtualService, Map<string, GatewayServer>>;
  /** The servers that have the host; at least one. */
  readonly servers: Set<GatewayServer>;
  httpsRedirect: boolean;
}

function* virtualHosts(
  servers: readonly GatewayServer[],
  shape: ProxyShape,
  push: PushContext,
  reach: Reach,
  dependsOn: ConfigKey[],
): Generator<undefined, VirtualHost[]> {
  const { port } = servers[0]!;
  const planned = yield* planHosts(servers, shape, push, dependsOn);
  const misdirected = withoutMisdirected(planned, servers);
  const plans = collapsed(planned);
  yield undefined;
  const all: VirtualHost[] = [];
  for (const { names, plan } of plans) {
    const host = virtualHost(
      virtualHostName(names[0]!, [...plan.servers][0]!.server.port.number),
      names.map(bracketed),
      yield* routesOf(plan, shape, push, reach, dependsOn),
      plan.httpsRedirect ? VirtualHost_TlsRequirementType.ALL : undefined,
    );
    all.push(withOrigins(host, originsOfPlan(plan)));
    yield undefined;
  }
  if (misdirected.size > 0) {
    const domains = [...misdirected.keys()].flatMap((host) => sameNameEndings.map((ending) => host + ending));
    const owners = [...new Set(misdirected.values())];
    dependsOn.push(...owners.map(({ gateway }) => configKeyOf(gateway)));
    const origins = [...servers, ...owners].map(gatewayOrigin);
    all.push(withOrigins(misdirectedHost(`misdirected:${port}`, domains), origins));
  }
  const hosts = all
    .filter((host) => host.routes.length > 0 || host.requireTls === VirtualHost_TlsRequirementType.ALL)
    .sort((a, b) => compareText(a.name, b.name));
  // Without a virtual host Envoy would answer the same 404, but nobody could tell why.
  if (hosts.length > 0) return hosts;
  return [withOrigins(virtualHost(`blackhole:${port}`, ['*'], []), servers.map(gatewayOrigin))];
}

/** Removes the hosts that other servers of the port serve and require more for. @returns these hosts, by their servers */
function withoutMisdirected(
  plans: Map<string, HostPlan>,
  servers: readonly GatewayServer[],
): ReadonlyMap<string, ServerOnPort> {
  const misdirected = new Map(servers.flatMap((server) => [...(server.misdirected ?? [])]));
  if (misdirected.size === 0) return misdirected;
  const known = new Set([...misdirected.keys(), ...servers.flatMap(({ hosts }) => hosts.map(dnsName))]);
  for (const host of [...plans.keys()]) if (misdirected.has(mostSpecific(host, known)!)) plans.delete(host);
  return misdirected;
}

/** A client may write the root's dot and an empty port: it is the same name, and Envoy removes neither. */
const sameNameEndings: readonly string[] = ['', '.', ':', '.:'];

function originsOfPlan({ servers, services }: HostPlan): readonly Origin[] {
  return [...[...servers].map(gatewayOrigin), ...[...services.keys()].flatMap(virtualServiceOrigins)];
}

function* planHosts(
  servers: readonly GatewayServer[],
  shape: ProxyShape,
  push: PushContext,
  dependsOn: ConfigKey[],
): Generator<undefined, Map<string, HostPlan>> {
  const plans = new Map<string, HostPlan>();
  const planOf = (host: string): HostPlan => {
    const plan = plans.get(host) ?? { services: new Map(), servers: new Set(), httpsRedirect: false };
    plans.set(host, plan);
    return plan;
  };
  const seen = new Set<string>();
  for (const server of servers) {
    yield undefined;
    dependsOn.push(configKeyOf(server.gateway));
    const redirect = server.server.tls?.httpsRedirect === true;
    const name = gatewayName(server.gateway);
    const services = push.virtualServicesFor(name, shape.configNamespace);
    const { number } = server.server.port;
    const port = portsThatCount(services).has(number) ? number : '';
    // Where an older server of the object has a host, a younger one has nothing to add, but for matches of its port.
    const hosts = server.hosts.filter((host) => isNew(`${name} ${redirect} ${port} ${host}`, seen));
    for (const taken of takenServices(server, services, hosts)) {
      const text = serverText(taken.service, server);
      for (const host of taken.hosts) {
        const plan = planOf(host);
        const through = plan.services.get(taken.service);
        if (through === undefined) plan.services.set(taken.service, new Map([[text, server]]));
        else if (!through.has(text)) through.set(text, server);
        plan.httpsRedirect ||= redirect;
        plan.servers.add(server);
      }
    }
    if (!redirect) continue;
    for (const host of hosts) {
      const plan = planOf(dnsName(host));
      plan.httpsRedirect = true;
      plan.servers.add(server);
    }
  }
  return plans;
}

function isNew(text: string, seen: Set<string>): boolean {
  if (seen.has(text)) return false;
  seen.add(text);
  return true;
}

/** Hosts with the same routes as one, named for the first of them in the alphabet, and for the port as the server has it. */
function collapsed(plans: ReadonlyMap<string, HostPlan>): { names: string[]; plan: HostPlan }[] {
  const ids = new Map<unknown, number>();
  const idOf = (thing: unknown): number => {
    const id = ids.get(thing) ?? ids.size;
    ids.set(thing, id);
    return id;
  };
  const groups = new Map<string, { names: string[]; plan: HostPlan }>();
  for (const [host, plan] of [...plans].sort(([a], [b]) => compareText(a, b))) {
    const routes = [...plan.services].flatMap(([service, through]) => [
      service,
      ...[...through.values()].flatMap(({ gateway, server }) => [gateway, server.port.number]),
    ]);
    const key = [plan.httpsRedirect, ...routes.map(idOf)].join();
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { names: [host], plan });
    else group.names.push(host);
  }
  return [...groups.values()];
}

/** The routes of all virtual services of the host, in the order in which they hold; those that take everything come last. */
function* routesOf(
  plan: HostPlan,
  shape: ProxyShape,
  push: PushContext,
  reach: Reach,
  dependsOn: ConfigKey[],
): Generator<undefined, Route[]> {
  const inOrder = byHolding(shape.configNamespace);
  const routes: Route[] = [];
  for (const [service, through] of [...plan.services].sort(([a], [b]) => inOrder(a, b))) {
    const made: MadeRoutes = new Map();
    for (const { gateway, server } of through.values()) {
      const context: RouteContext = {
        shape,
        gateway: gatewayName(gateway),
        listenerPort: server.port.number,
        reach,
        meshRetry: push.mesh.defaultHttpRetryPolicy,
        dependsOn,
      };
      for (const route of yield* buildingVirtualServiceRoutes(service, context, made)) routes.push(route);
    }
    yield undefined;
  }
  const catchAll = routes.filter((route) => isCatchAll(route.match!));
  return catchAll.length === 0 ? routes : [...routes.filter((route) => !isCatchAll(route.match!)), catchAll[0]!];
}
