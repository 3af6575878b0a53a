import { create } from '@bufbuild/protobuf';
import type { Any } from '@bufbuild/protobuf/wkt';
import { type Route, type RouteMatch, RouteSchema } from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { ConfigKey } from '../../../model/config/config.ts';
import type {
  HttpMatchRequest,
  HttpRoute,
  HttpRouteDestination,
} from '../../../model/kinds/virtual-service/virtual-service.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import type { Port, Service } from '../../../model/services/service.ts';
import { peerHeader } from '../../../model/standard-metrics/peer-claim.ts';
import { runToEnd } from '../../../runtime/turns.ts';
import { httpRouteOrigins, serviceOrigin, withOrigins } from '../../inputs/message-origin.ts';
import type { Init } from '../../messages/init.ts';
import { istioMetadata } from '../../messages/metadata.ts';
import { duration } from '../../messages/protobuf-duration.ts';
import { resolveAlias } from '../../traffic/alias.ts';
import { resolveDestination } from '../../traffic/destination.ts';
import { configPath, outboundClusterName } from '../../traffic/resource-names.ts';
import { type ActionContext, forwardAction, hashOf, usedDestinations } from './action.ts';
import { corsConfig, corsFilter } from './cors.ts';
import { faultConfig, faultFilter } from './fault.ts';
import { type HeaderFields, headerFields, joinedHeaders } from './headers.ts';
import { appliesTo, isCatchAll, type MatchContext, routeMatch } from './match.ts';
import { directResponse, redirectAction } from './redirect.ts';
import { retryPolicy } from './retry.ts';
import type { WithDependencies } from './with-dependencies.ts';

export interface RouteContext extends MatchContext, ActionContext {}

/** Number of routes translated between two yields. */
const routesAtATime = 256;

/**
 * Returns routes in the order of the VirtualService. Routes after a catch-all are omitted.
 *
 * @param contexts one for each server of a port that receives requests for the VirtualService; a match gets one route, for the first context to which
 * it applies
 */
export function virtualServiceRoutes(
  virtualService: ResolvedVirtualService,
  contexts: readonly RouteContext[],
): WithDependencies<Route[]> {
  return runToEnd(buildVirtualServiceRoutesInSteps(virtualService, contexts));
}

/** Yields, because a VirtualService may have thousands of routes. */
export function* buildVirtualServiceRoutesInSteps(
  virtualService: ResolvedVirtualService,
  contexts: readonly RouteContext[],
): Generator<undefined, WithDependencies<Route[]>> {
  const value: Route[] = [];
  const dependsOn: ConfigKey[] = [...virtualService.origins];
  const matches = [...matchesOf(virtualService)];
  /** Whether a match was translated to a catch-all, by the index of the match. */
  const catchAllByMatchIndex = new Map<number, boolean>();
  for (const context of contexts) {
    for (const [matchIndex, { http, index, match }] of matches.entries()) {
      if (!appliesTo(match, context)) continue;
      let isCatchAllMatch = catchAllByMatchIndex.get(matchIndex);
      if (isCatchAllMatch === undefined) {
        const route = toRoute(http, match, virtualService, context);
        if (route === undefined) continue;
        value.push(withOrigins(route.value, httpRouteOrigins(virtualService, index)));
        for (const key of route.dependsOn) dependsOn.push(key);
        if (value.length % routesAtATime === 0) yield undefined;
        isCatchAllMatch = isCatchAll(route.value.match!);
        catchAllByMatchIndex.set(matchIndex, isCatchAllMatch);
      }
      if (isCatchAllMatch) break;
    }
  }
  return { value, dependsOn };
}

interface IndexedMatch {
  readonly http: HttpRoute;
  readonly index: number;
  readonly match: HttpMatchRequest;
}

/** A route without matches applies to all requests. */
function* matchesOf({ config }: ResolvedVirtualService): Iterable<IndexedMatch> {
  const matchAll: readonly HttpMatchRequest[] = [{}];
  for (const [index, http] of (config.spec.http ?? []).entries()) {
    for (const match of http.match?.length ? http.match : matchAll) yield { http, index, match };
  }
}

export function defaultRoute(
  service: Service,
  port: Port,
  name: string,
  context: ActionContext,
): WithDependencies<Route> {
  const destination = { host: name, port: { number: port.number } };
  const { value: hash, dependsOn } = hashOf(destination, context);
  const { clusteredService } = resolveAlias(name, context.reach);
  const route = create(RouteSchema, {
    name: 'default',
    match: { pathSpecifier: { case: 'prefix', value: '/' } },
    decorator: { operation: `${name}:${port.number}/*` },
    ...(service.meshExternal && { requestHeadersToRemove: [peerHeader] }),
    action: {
      case: 'route',
      value: {
        clusterSpecifier: {
          case: 'cluster',
          value: outboundClusterName(port.number, '', (clusteredService ?? service).hostname),
        },
        timeout: duration(0),
        maxGrpcTimeout: duration(0),
        retryPolicy: retryPolicy(undefined, context.meshRetry, hash !== undefined),
        hashPolicy: hash ? [hash] : [],
      },
    },
  });
  return { value: withOrigins(route, serviceOrigin(service)), dependsOn };
}

/** Returns `undefined` for a route without destination, redirect or direct response. */
function toRoute(
  http: HttpRoute,
  match: HttpMatchRequest,
  { config }: ResolvedVirtualService,
  context: RouteContext,
): WithDependencies<Route> | undefined {
  const translatedAction = actionOf(http, context);
  if (translatedAction === undefined) return undefined;
  const { value: action, dependsOn } = translatedAction;
  const envoyMatch = routeMatch(match);
  const destinations = usedDestinations(http);
  const singleDestination = destinations.length === 1 && action.case === 'route' ? destinations[0] : undefined;
  const routeHeaders = headerFields(http.headers);
  const operationHost = singleDestination ? singleDestination.destination.host : config.name;
  const value = create(RouteSchema, {
    name: [http.name, match.name].filter(Boolean).join('.'),
    match: envoyMatch,
    action,
    metadata: istioMetadata({ config: configPath(config) }),
    decorator: { operation: `${operationHost}:${context.listenerPort}${pathText(envoyMatch)}` },
    typedPerFilterConfig: filterConfigs(http),
    statPrefix: match.statPrefix ?? '',
    ...withoutPeerClaim(
      singleDestination ? joinedHeaders(routeHeaders, headerFields(singleDestination.headers)) : routeHeaders,
      destinations,
      context,
    ),
  });
  return { value, dependsOn };
}

/** Removes workload identities, which servers outside the mesh must not receive. */
function withoutPeerClaim(
  headers: HeaderFields,
  destinations: readonly HttpRouteDestination[],
  { reach, listenerPort }: RouteContext,
): HeaderFields {
  const isExternal = destinations.some(
    ({ destination }) => resolveDestination(destination, listenerPort, reach).service?.meshExternal,
  );
  if (!isExternal) return headers;
  return { ...headers, requestHeadersToRemove: [...headers.requestHeadersToRemove, peerHeader] };
}

type Action = NonNullable<Init<typeof RouteSchema>['action']>;

function actionOf(http: HttpRoute, context: RouteContext): WithDependencies<Action> | undefined {
  const { redirect, directResponse: response } = http;
  if (redirect) return withoutDependencies({ case: 'redirect', value: redirectAction(redirect, context.listenerPort) });
  if (response) return withoutDependencies({ case: 'directResponse', value: directResponse(response) });
  const destinations = usedDestinations(http);
  if (destinations.length === 0) return undefined;
  const { value, dependsOn } = forwardAction(http, destinations, context);
  return { value: { case: 'route', value }, dependsOn };
}

function withoutDependencies(value: Action): WithDependencies<Action> {
  return { value, dependsOn: [] };
}

function filterConfigs(http: HttpRoute): Record<string, Any> {
  const fault = http.fault && faultConfig(http.fault);
  return {
    ...(http.corsPolicy && { [corsFilter]: corsConfig(http.corsPolicy) }),
    ...(fault && { [faultFilter]: fault }),
  };
}

/** Returns the path for a trace's operation name. */
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
