/** HTTPRoutes for Services apply to clients in the mesh (GAMMA of the Gateway API). A route in the Service's namespace applies to all clients. */
import type { Steps } from '../../../runtime/turns.ts';
import type { Config, Origin } from '../../config/config.ts';
import type { KubernetesService } from '../../kinds/kubernetes/service.ts';
import type { HttpRoute, VirtualService } from '../../kinds/virtual-service/virtual-service.ts';
import { exportAnnotation } from '../../services/kubernetes/convert-service.ts';
import type { ServiceAttachment } from './attachments.ts';
import { hostsOrigin, httpOrigins, parentsText } from './gateway-routes.ts';
import { generatedNameMark, generatedObject } from './generated-object.ts';
import { closeRankedRoute, type RankedRoute, routesOf } from './http-route-rules.ts';
import { comparePrecedence } from './precedence.ts';
import type { TranslationContext } from './translation-context.ts';

export function* serviceVirtualServices(
  attachments: readonly ServiceAttachment[],
  context: TranslationContext,
): Steps<Config<VirtualService>[]> {
  const virtualServices: Config<VirtualService>[] = [];
  for (const clients of groupByClients(attachments)) {
    virtualServices.push(virtualService(clients, context));
    yield;
  }
  return virtualServices;
}

export interface ClientsRoutes {
  readonly service: Config<KubernetesService>;
  /** Namespace of the clients; the Service's own namespace means all clients. */
  readonly namespace: string;
  readonly creationTimestamp: number;
  readonly attachments: readonly ServiceAttachment[];
}

export function* groupByClients(attachments: readonly ServiceAttachment[]): Generator<ClientsRoutes> {
  for (const [service, serviceAttachments] of Map.groupBy(attachments, ({ service }) => service)) {
    const attachmentsByNamespace = Map.groupBy(serviceAttachments, ({ route }) => route.namespace);
    for (const [namespace, namespaceAttachments] of attachmentsByNamespace) {
      const creationTimestamp = Math.min(...namespaceAttachments.map(({ route }) => route.creationTimestamp));
      yield { service, namespace, creationTimestamp, attachments: namespaceAttachments };
    }
  }
}

function virtualService(
  { service, namespace, creationTimestamp, attachments }: ClientsRoutes,
  context: TranslationContext,
): Config<VirtualService> {
  const routes = [...new Set(attachments.map(({ route }) => route))];
  const rankedRoutesByRoute = new Map(routes.map((route) => [route, routesOf(route, { inMesh: true }, context)]));
  const matches = attachments
    .flatMap(({ route, port, isClosed }) =>
      rankedRoutesByRoute.get(route)!.map((rankedRoute) => {
        const routeForAllPorts = isClosed ? closeRankedRoute(rankedRoute) : rankedRoute;
        return port === undefined ? routeForAllPorts : routeForPort(routeForAllPorts, port);
      }),
    )
    .sort(comparePrecedence);
  const defaultRoutes = otherPorts(service, attachments, context);
  const { kind, name } = service;
  const serviceOrigin: Origin = { key: { kind, namespace: service.namespace, name } };
  const origins = Object.fromEntries(
    defaultRoutes.map((_, index) => [`http[${matches.length + index}]`, [serviceOrigin]]),
  );
  return generatedObject<VirtualService>({
    kind: 'VirtualService',
    name: `${service.name}.${service.namespace}-${generatedNameMark}`,
    namespace,
    creationTimestamp,
    sourceConfig: routes[0]!,
    annotations: { 'internal.istio.io/parents': parentsText(routes) },
    partOrigins: { hosts: [...routes.map(hostsOrigin), serviceOrigin], ...httpOrigins(matches), ...origins },
    spec: {
      hosts: [context.hostOf(service.namespace, service.name)],
      gateways: ['mesh'],
      http: [...matches.map(({ http }) => http), ...defaultRoutes],
      exportTo: namespace === service.namespace ? exportTargetsOf(service) : ['.'],
    },
  });
}

/** Exports routes only to the namespaces that see the Service, so that its host does not become visible to others. */
function exportTargetsOf(service: Config<KubernetesService>): readonly string[] {
  const exportTo = exportAnnotation(service);
  return exportTo.length > 0 ? exportTo : ['*'];
}

function routeForPort(rankedRoute: RankedRoute, port: number): RankedRoute {
  return {
    ...rankedRoute,
    http: { ...rankedRoute.http, match: rankedRoute.http.match!.map((match) => ({ ...match, port })) },
  };
}

function otherPorts(
  { namespace, name, spec }: Config<KubernetesService>,
  attachments: readonly ServiceAttachment[],
  context: TranslationContext,
): HttpRoute[] {
  if (attachments.some(({ port }) => port === undefined)) return [];
  const routedPorts = new Set(attachments.map(({ port }) => port));
  const host = context.hostOf(namespace, name);
  return spec.spec.ports
    .filter(({ port }) => !routedPorts.has(port))
    .map(({ port }) => ({
      match: [{ port }],
      route: [{ destination: { host, port: { number: port } }, weight: 100 }],
    }));
}
