/** The routes of a virtual service as Envoy reads them (spec/discovery.md §8.6). */
import { create } from '@bufbuild/protobuf';
import type { Any } from '@bufbuild/protobuf/wkt';
import { type Route, type RouteMatch, RouteSchema } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { HttpMatchRequest, HttpRoute } from '../../model/kinds/virtual-service.ts';
import type { ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import type { Port, Service } from '../../model/services/service.ts';
import { atOnce } from '../../runtime/turns.ts';
import { httpRouteOrigins, serviceOrigin, withOrigins } from '../inputs/message-origin.ts';
import type { Init } from '../messages/init.ts';
import { istioMetadata } from '../messages/metadata.ts';
import { duration } from '../messages/protobuf-duration.ts';
import { namedBy } from '../traffic/alias.ts';
import { configPath, outboundClusterName } from '../traffic/resource-names.ts';
import { type ActionContext, forwardAction, hashOf, usedDestinations } from './action.ts';
import { corsConfig, corsFilter } from './cors.ts';
import { faultConfig, faultFilter } from './fault.ts';
import { headerFields, joinedHeaders } from './headers.ts';
import { appliesTo, isCatchAll, type MatchContext, routeMatch } from './match.ts';
import { directResponse, redirectAction } from './redirect.ts';
import { retryPolicy } from './retry.ts';

export interface RouteContext extends MatchContext, ActionContext {}

/** Matches that have a route, by their place in the virtual service, and whether it takes everything. */
export type MadeRoutes = Map<string, boolean>;

/** Routes that are made without a rest. */
const routesAtATime = 256;

/**
 * In the order written; what stands behind a route that takes everything is dropped.
 *
 * @param made for other servers of the same port: a match gets one route, at the first of them that it applies to
 */
export function virtualServiceRoutes(
  service: ResolvedVirtualService,
  context: RouteContext,
  made: MadeRoutes = new Map(),
): Route[] {
  return atOnce(buildingVirtualServiceRoutes(service, context, made));
}

/** As {@link virtualServiceRoutes}, with rests: one virtual service may have thousands of routes. */
export function* buildingVirtualServiceRoutes(
  service: ResolvedVirtualService,
  context: RouteContext,
  made: MadeRoutes,
): Generator<undefined, Route[]> {
  const routes: Route[] = [];
  context.dependsOn.push(...service.origins);
  for (const [index, http] of (service.config.spec.http ?? []).entries()) {
    const everything: readonly HttpMatchRequest[] = [{}];
    for (const [place, match] of (http.match?.length ? http.match : everything).entries()) {
      if (!appliesTo(match, context)) continue;
      const key = `${index} ${place}`;
      let takesAll = made.get(key);
      if (takesAll === undefined) {
        const route = toRoute(http, match, service, context);
        if (route === undefined) continue;
        routes.push(withOrigins(route, httpRouteOrigins(service, index)));
        if (routes.length % routesAtATime === 0) yield undefined;
        takesAll = isCatchAll(route.match!);
        made.set(key, takesAll);
      }
      if (takesAll) return routes;
    }
  }
  return routes;
}

/**
 * What a service without virtual service gets.
 *
 * @param name by which it is asked for: its own, or that of an alias
 */
export function defaultRoute(service: Service, port: Port, name: string, context: ActionContext): Route {
  const destination = { host: name, port: { number: port.number } };
  const hash = hashOf(destination, context);
  const { clustered } = namedBy(name, context.reach);
  const route = create(RouteSchema, {
    name: 'default',
    match: { pathSpecifier: { case: 'prefix', value: '/' } },
    decorator: { operation: `${name}:${port.number}/*` },
    action: {
      case: 'route',
      value: {
        clusterSpecifier: {
          case: 'cluster',
          value: outboundClusterName(port.number, '', (clustered ?? service).hostname),
        },
        timeout: duration(0),
        maxGrpcTimeout: duration(0),
        retryPolicy: retryPolicy(undefined, context.meshRetry, hash !== undefined),
        hashPolicy: hash ? [hash] : [],
      },
    },
  });
  return withOrigins(route, serviceOrigin(service));
}

/** Undefined for a route that does nothing: no destination, redirect or response. */
function toRoute(
  http: HttpRoute,
  match: HttpMatchRequest,
  { config }: ResolvedVirtualService,
  context: RouteContext,
): Route | undefined {
  const action = actionOf(http, context);
  if (action === undefined) return undefined;
  const envoyMatch = routeMatch(match);
  const destinations = usedDestinations(http);
  const sole = destinations.length === 1 && action.case === 'route' ? destinations[0] : undefined;
  const own = headerFields(http.headers);
  const operationHost = sole ? sole.destination.host : config.name;
  return create(RouteSchema, {
    name: [http.name, match.name].filter(Boolean).join('.'),
    match: envoyMatch,
    action,
    metadata: istioMetadata({ config: configPath(config) }),
    decorator: { operation: `${operationHost}:${context.listenerPort}${pathText(envoyMatch)}` },
    typedPerFilterConfig: filterConfigs(http),
    statPrefix: match.statPrefix ?? '',
    ...(sole ? joinedHeaders(own, headerFields(sole.headers)) : own),
  });
}

function actionOf(http: HttpRoute, context: RouteContext): Init<typeof RouteSchema>['action'] | undefined {
  if (http.redirect) return { case: 'redirect', value: redirectAction(http.redirect, context.listenerPort) };
  if (http.directResponse) return { case: 'directResponse', value: directResponse(http.directResponse) };
  const destinations = usedDestinations(http);
  if (destinations.length === 0) return undefined;
  return { case: 'route', value: forwardAction(http, destinations, context) };
}

function filterConfigs(http: HttpRoute): Record<string, Any> {
  const fault = http.fault && faultConfig(http.fault);
  return {
    ...(http.corsPolicy && { [corsFilter]: corsConfig(http.corsPolicy) }),
    ...(fault && { [faultFilter]: fault }),
  };
}

/** The path in the name of a traced operation. */
function pathText({ pathSpecifier }: RouteMatch): string {
  switch (pathSpecifier.case) {
    case 'path':
      return pathSpecifier.value;
    case 'prefix':
    case 'pathSeparatedPrefix':
      return `${pathSpecifier.value}*`;
    case 'safeRegex':
      return pathSpecifier.value.regex;
    default:
      return '/*';
  }
}
