/** Each VirtualService combines all routes of a host in the Gateway API's precedence order of matches. */
import type { Steps } from '../../../runtime/turns.ts';
import type { Config, Origin } from '../../config/config.ts';
import type { RouteObject } from '../../kinds/gateway-api/http-route.ts';
import type { VirtualService } from '../../kinds/virtual-service/virtual-service.ts';
import type { ListenerAttachment } from './attachments.ts';
import { dependsOnHost, routesForHost } from './default-port.ts';
import { isWithinWider, type KnownListener } from './gateway-listeners.ts';
import { generatedObject as madeObject, nameAtListener } from './generated-object.ts';
import { closeRankedRoute, dependsOnEntryPoint, type RankedRoute, routeNameOf, routesOf } from './http-route-rules.ts';
import { comparePrecedence, matchesEverything } from './precedence.ts';
import type { TranslationContext } from './translation-context.ts';

export function* gatewayVirtualServices(
  listeners: readonly KnownListener[],
  attachments: readonly ListenerAttachment[],
  context: TranslationContext,
): Steps<Config<VirtualService>[]> {
  const attachmentsByListener = Map.groupBy(attachments, ({ listener }) => listener);
  const virtualServices: Config<VirtualService>[] = [];
  // Listeners share translations that are the same for all, so memory grows with routes plus listeners, not with their product.
  const sharedRoutes = new Map<Config<RouteObject>, readonly RankedRoute[]>();
  const routesAtListener = ({ route, listener, isClosed }: ListenerAttachment): readonly RankedRoute[] => {
    const cachedRoutes = sharedRoutes.get(route);
    if (cachedRoutes !== undefined) return cachedRoutes;
    const translatedRoutes = routesOf(route, entranceOf(listener), context);
    const rankedRoutes = isClosed ? translatedRoutes.map(closeRankedRoute) : translatedRoutes;
    if (isClosed || !dependsOnEntryPoint(route)) sharedRoutes.set(route, rankedRoutes);
    return rankedRoutes;
  };
  for (const listener of listeners) {
    const routes = attachmentsByListener.get(listener) ?? [];
    // Routes of inactive listeners are also translated, so that their errors are reported.
    const rankedRoutesByRoute = new Map<Config<RouteObject>, readonly RankedRoute[]>();
    for (const attachment of routes) {
      rankedRoutesByRoute.set(attachment.route, routesAtListener(attachment));
      yield;
    }
    if (listener.server === undefined) continue;
    const routesByHost = new Map<string, Config<RouteObject>[]>();
    for (const { route, hosts } of routes) {
      for (const host of hosts) {
        const hostRoutes = routesByHost.get(host);
        if (hostRoutes === undefined) routesByHost.set(host, [route]);
        else hostRoutes.push(route);
      }
    }
    const needsOwnHost = (route: Config<RouteObject>): boolean => rankedRoutesByRoute.get(route)!.some(dependsOnHost);
    for (const [hosts, routesOfHosts] of groupRoutes(routesByHost, needsOwnHost)) {
      const matches = routesOfHosts.flatMap((route) => rankedRoutesByRoute.get(route)!).sort(comparePrecedence);
      reportUnreached(matches, routesOfHosts, context);
      const firstRoutes = matches.flatMap((match) => routesForHost(match, hosts[0]!));
      virtualServices.push(virtualService(listener, hosts, routesOfHosts, firstRoutes));
      yield;
    }
    const acceptsTraffic = routesByHost.has(listener.hostname) || !isWithinWider(listener, listeners);
    if (!acceptsTraffic) virtualServices.push(closedVirtualService(listener));
    yield;
  }
  return virtualServices;
}

function entranceOf({ listener: { port, protocol } }: KnownListener) {
  return { port, scheme: protocol === 'HTTPS' ? ('https' as const) : ('http' as const) };
}

/** A regular expression after a match of every path is almost certainly unintended. */
function reportUnreached(
  matches: readonly RankedRoute[],
  routes: readonly Config<RouteObject>[],
  context: TranslationContext,
): void {
  const catchAllIndex = matches.findIndex(matchesEverything);
  if (catchAllIndex < 0) return;
  const routeByName = new Map(routes.map((route) => [routeNameOf(route), route]));
  for (const { match, routeName, rule, index } of matches.slice(catchAllIndex + 1)) {
    if (match.path.type !== 'RegularExpression') continue;
    const route = routeByName.get(routeName)!;
    const { routeName: winningRoute, rule: winningRule } = matches[catchAllIndex]!;
    context.warn(
      route,
      `rules[${rule}].matches[${index}].${route.kind === 'GRPCRoute' ? 'method' : 'path'}`,
      `is never reached: rules[${winningRule}] of ${winningRoute} matches every path, and regular expressions come after all prefixes`,
    );
  }
}

function groupRoutes(
  routesByHost: ReadonlyMap<string, readonly Config<RouteObject>[]>,
  needsOwnHost: (route: Config<RouteObject>) => boolean,
): [hosts: string[], routes: readonly Config<RouteObject>[]][] {
  const groupsByKey = new Map<string, [string[], readonly Config<RouteObject>[]]>();
  for (const [host, routes] of routesByHost) {
    const names = routes.map(routeNameOf).join();
    const key = routes.some(needsOwnHost) ? `${names} ${host}` : names;
    const group = groupsByKey.get(key);
    if (group === undefined) groupsByKey.set(key, [[host], routes]);
    else group[0].push(host);
  }
  return [...groupsByKey.values()];
}

function virtualService(
  { gateway, gatewayName }: KnownListener,
  hosts: readonly string[],
  routes: readonly Config<RouteObject>[],
  matches: readonly RankedRoute[],
): Config<VirtualService> {
  const [firstRoute] = routes;
  return madeObject<VirtualService>({
    kind: 'VirtualService',
    name: nameAtListener(gatewayName, hosts[0]!),
    namespace: gateway.namespace,
    creationTimestamp: firstRoute!.creationTimestamp,
    sourceConfig: firstRoute!,
    annotations: { 'internal.istio.io/parents': parentsText(routes) },
    partOrigins: { hosts: routes.map(hostsOrigin), ...httpOrigins(matches) },
    spec: { hosts, gateways: [gatewayName], http: matches.map(({ http }) => http), exportTo: ['.'] },
  });
}

/** Requests without a matching route must not reach a listener with a wider hostname. */
function closedVirtualService({ gateway, gatewayName, hostname, index }: KnownListener): Config<VirtualService> {
  const { kind, namespace, name, creationTimestamp } = gateway;
  const origin: Origin = { key: { kind, namespace, name }, path: ['spec', 'listeners', index] };
  return madeObject<VirtualService>({
    kind: 'VirtualService',
    name: nameAtListener(gatewayName, hostname),
    namespace,
    creationTimestamp,
    sourceConfig: gateway,
    annotations: { 'internal.istio.io/parents': `Gateway/${name}.${namespace}` },
    partOrigins: { hosts: [origin], 'http[0]': [origin] },
    spec: { hosts: [hostname], gateways: [gatewayName], http: [{ directResponse: { status: 404 } }], exportTo: ['.'] },
  });
}

export function parentsText(routes: readonly Config<RouteObject>[]): string {
  return routes.map(({ kind, namespace, name }) => `${kind}/${name}.${namespace}`).join();
}

export function hostsOrigin({ kind, namespace, name, spec }: Config<RouteObject>): Origin {
  return { key: { kind, namespace, name }, path: ['spec', spec.hostnames.length > 0 ? 'hostnames' : 'parentRefs'] };
}

export function httpOrigins(matches: readonly RankedRoute[]): Record<string, readonly Origin[]> {
  return Object.fromEntries(matches.map(({ origin }, index) => [`http[${index}]`, [origin]]));
}
