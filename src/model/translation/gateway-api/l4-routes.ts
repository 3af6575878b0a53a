/** Builds VirtualServices for TLSRoutes and TCPRoutes: one per active route at listeners, and one per set of clients for Services. */
import type { Steps } from '../../../runtime/turns.ts';
import { type Config, compareText, type Origin } from '../../config/config.ts';
import type { RouteObject } from '../../kinds/gateway-api/http-route.ts';
import type { RouteDestination, VirtualService } from '../../kinds/virtual-service/virtual-service.ts';
import type { Attachments, ListenerAttachment } from './attachments.ts';
import { destinationOf, noDestination } from './backends.ts';
import type { KnownListener } from './gateway-listeners.ts';
import { hostsOrigin, parentsText } from './gateway-routes.ts';
import { generatedNameMark, generatedObject, nameAtListener } from './generated-object.ts';
import { type ClientsRoutes, groupByClients } from './service-routes.ts';
import type { TranslationContext } from './translation-context.ts';

export function* l4VirtualServices(
  { toListeners, toServices }: Pick<Attachments, 'toListeners' | 'toServices'>,
  context: TranslationContext,
): Steps<Config<VirtualService>[]> {
  const activeRoutes = firstRoutes(toListeners);
  reportShadowed(toListeners, activeRoutes, context);
  const virtualServices: Config<VirtualService>[] = [];
  for (const [route, attachments] of Map.groupBy(toListeners, ({ route }) => route)) {
    // Unattached routes are also resolved, so that their errors are reported.
    const routeDestinations = destinationsOf(route, false, context);
    for (const attachment of attachments) {
      // A TCPRoute matches all connections of its listener, so only the first one is active.
      const isRouteApplied =
        route.kind !== 'TCPRoute' || activeRoutes.firstRouteOf(attachment.listener, everyConnection) === route;
      const destinations = attachment.isClosed ? noDestinations : routeDestinations;
      if (attachment.listener.server !== undefined && isRouteApplied)
        virtualServices.push(virtualServiceOfListener(attachment, destinations));
    }
    yield;
  }
  for (const clients of groupByClients(toServices)) {
    virtualServices.push(virtualServiceOfService(clients, context));
    yield;
  }
  return virtualServices;
}

const everyConnection = 'every connection';

function matchKeysOf({ route, hosts }: ListenerAttachment): readonly string[] {
  return route.kind === 'TCPRoute' ? [everyConnection] : hosts;
}

interface FirstRoutes {
  firstRouteOf(listener: KnownListener, name: string): Config<RouteObject> | undefined;
}

function firstRoutes(toListeners: readonly ListenerAttachment[]): FirstRoutes {
  const routesByListener = new Map<KnownListener, Map<string, Config<RouteObject>>>();
  for (const attachment of toListeners) {
    const { route, listener } = attachment;
    const firstByName = routesByListener.get(listener) ?? new Map<string, Config<RouteObject>>();
    routesByListener.set(listener, firstByName);
    for (const name of matchKeysOf(attachment)) {
      const firstRoute = firstByName.get(name);
      if (firstRoute === undefined || compareAgeAndName(route, firstRoute) < 0) firstByName.set(name, route);
    }
  }
  return { firstRouteOf: (listener, name) => routesByListener.get(listener)?.get(name) };
}

/** Warns once for each route, because the status is still Accepted. */
function reportShadowed(
  toListeners: readonly ListenerAttachment[],
  activeRoutes: FirstRoutes,
  context: TranslationContext,
): void {
  const reportedRoutes = new Set<Config<RouteObject>>();
  for (const attachment of toListeners) {
    const { route, listener } = attachment;
    if (reportedRoutes.has(route)) continue;
    for (const name of matchKeysOf(attachment)) {
      const firstRoute = activeRoutes.firstRouteOf(listener, name)!;
      if (firstRoute === route) continue;
      reportedRoutes.add(route);
      const [field, description] =
        name === everyConnection ? (['parentRefs', name] as const) : (['hostnames', `connections to ${name}`] as const);
      const firstRouteText = `${firstRoute.kind} ${firstRoute.namespace}/${firstRoute.name}`;
      context.warn(
        route,
        field,
        `${firstRouteText} handles ${description} at listener ${listener.listener.name}: it is older, or first by name`,
      );
      break;
    }
  }
}

/** Oldest first, then by `namespace/name` as one text, as the API defines. */
function compareAgeAndName(a: Config, b: Config): number {
  return a.creationTimestamp - b.creationTimestamp || compareText(textOf(a), textOf(b));
}

/** Compared with the characters of namespaces, a dot has the same rank as the API's slash. */
function textOf({ namespace, name }: Config): string {
  return `${namespace}.${name}`;
}

function virtualServiceOfListener(
  { route, listener: { gateway, gatewayName, hostname }, hosts }: ListenerAttachment,
  destinations: readonly RouteDestination[],
): Config<VirtualService> {
  const isTls = route.kind === 'TLSRoute';
  return generatedObject<VirtualService>({
    kind: 'VirtualService',
    sourceConfig: route,
    annotations: { 'internal.istio.io/parents': parentsText([route]) },
    name: nameAtListener(gatewayName, `${route.kind.toLowerCase()}-${textOf(route)}`),
    namespace: gateway.namespace,
    creationTimestamp: route.creationTimestamp,
    partOrigins: { hosts: [hostsOrigin(route)], [isTls ? 'tls[0]' : 'tcp[0]']: [ruleOrigin(route)] },
    spec: {
      hosts: isTls ? hosts : [hostname],
      gateways: [gatewayName],
      ...(isTls
        ? { tls: [{ match: [{ sniHosts: hosts }], route: destinations }] }
        : { tcp: [{ route: destinations }] }),
      exportTo: ['.'],
    },
  });
}

function virtualServiceOfService(
  { service, namespace, creationTimestamp, attachments }: ClientsRoutes,
  context: TranslationContext,
): Config<VirtualService> {
  const sortedAttachments = attachments.toSorted(
    (a, b) => Number(a.port === undefined) - Number(b.port === undefined) || compareAgeAndName(a.route, b.route),
  );
  const routes = [...new Set(sortedAttachments.map(({ route }) => route))];
  return generatedObject<VirtualService>({
    kind: 'VirtualService',
    name: `${service.name}.${service.namespace}-${generatedNameMark}-tcp`,
    namespace,
    creationTimestamp,
    sourceConfig: routes[0]!,
    annotations: { 'internal.istio.io/parents': parentsText(routes) },
    partOrigins: {
      hosts: routes.map(hostsOrigin),
      ...Object.fromEntries(sortedAttachments.map(({ route }, index) => [`tcp[${index}]`, [ruleOrigin(route)]])),
    },
    spec: {
      hosts: [context.hostOf(service.namespace, service.name)],
      gateways: ['mesh'],
      tcp: sortedAttachments.map(({ route, port, isClosed }) => ({
        ...(port !== undefined && { match: [{ port }] }),
        route: isClosed ? noDestinations : destinationsOf(route, true, context),
      })),
      exportTo: [namespace === service.namespace ? '*' : '.'],
    },
  });
}

/** Destination for connections of a route that exceeds its namespace's limit. */
const noDestinations: readonly RouteDestination[] = [{ destination: noDestination, weight: 100 }];

/** The first rule matches every connection. Connections that the weights assign to a missing backend are closed. */
function destinationsOf(
  route: Config<RouteObject>,
  isForMesh: boolean,
  context: TranslationContext,
): readonly RouteDestination[] {
  const { backendRefs } = route.spec.rules[0]!;
  const allDestinations = backendRefs.map((ref, index): RouteDestination => {
    const foundDestination = destinationOf(ref, route, context, isForMesh);
    if (!('missingText' in foundDestination)) return { destination: foundDestination, weight: ref.weight };
    const share = backendRefs.length > 1 ? 'its share of connections is' : 'connections are';
    context.warn(
      route,
      `rules[0].backendRefs[${index}]`,
      `${foundDestination.missingText}: ${share} closed`,
      foundDestination.warning,
    );
    return { destination: noDestination, weight: ref.weight };
  });
  const weightedBackends = allDestinations.filter(({ weight }) => weight !== 0);
  if (weightedBackends.length === 0) return noDestinations;
  return weightedBackends.length === 1 ? [{ ...weightedBackends[0]!, weight: 100 }] : weightedBackends;
}

function ruleOrigin({ kind, namespace, name }: Config<RouteObject>): Origin {
  return { key: { kind, namespace, name }, path: ['spec', 'rules', 0] };
}
