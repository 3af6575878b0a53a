/** Each match of an HTTPRoute becomes one VirtualService route. */
import type { Config, Origin } from '../../config/config.ts';
import type {
  BackendRef,
  HeaderModifier,
  HttpBackendRef,
  HttpRouteFilter,
  HttpRouteMatch,
  HttpRouteRule,
  RequestMirror,
  RequestRedirect,
  RouteObject,
  ValueMatchByName,
} from '../../kinds/gateway-api/http-route.ts';
import { pathModifierOf } from '../../kinds/gateway-api/http-route-filter.decode.ts';
import { everyRequest } from '../../kinds/gateway-api/http-route-match.decode.ts';
import type { StringMatch } from '../../kinds/virtual-service/string-match.ts';
import {
  closedRoute,
  type HeaderOperations,
  type Headers,
  type HttpMatchRequest,
  type HttpMirrorPolicy,
  type HttpRedirect,
  type HttpRoute,
  type HttpRouteDestination,
} from '../../kinds/virtual-service/virtual-service.ts';
import { destinationOf, noDestination } from './backends.ts';
import { pathMatches, pathRedirect, pathRewrite } from './paths.ts';
import type { RankedMatch } from './precedence.ts';
import type { TranslationContext, TranslationWarning } from './translation-context.ts';

export interface EntryPoint {
  readonly inMesh?: true;
  readonly port?: number;
  readonly scheme?: 'http' | 'https';
}

export interface RankedRoute extends RankedMatch {
  readonly http: HttpRoute;
  readonly origin: Origin;
}

/** gRPC clients map 503 to UNAVAILABLE. For a missing backend, GRPCRoute requires this status, and HTTPRoute requires 500 (`backendRefs`). */
const statusOf = ({ kind }: Config): 500 | 503 => (kind === 'GRPCRoute' ? 503 : 500);

export function routeNameOf({ kind, namespace, name }: Config): string {
  return kind === 'HTTPRoute' ? `${namespace}/${name}` : `${namespace}/${name} (${kind})`;
}

/** Whether the route has redirects, which contain port and scheme of the Gateway. */
export function dependsOnEntryPoint({ spec: { rules } }: Config<RouteObject>): boolean {
  return rules.some(({ filters }) => filters.some(({ requestRedirect }) => requestRedirect !== undefined));
}

export function routesOf(
  route: Config<RouteObject>,
  entryPoint: EntryPoint,
  context: TranslationContext,
): RankedRoute[] {
  const routeName = routeNameOf(route);
  return route.spec.rules.flatMap((rule, ruleIndex) => {
    const matches = rule.matches.length > 0 ? rule.matches : [everyRequest];
    const action = new RuleAction(route, rule, `rules[${ruleIndex}]`, entryPoint, context);
    const sharedAction = action.sharedRoute();
    return matches.map((match, index): RankedRoute => {
      const path = ['spec', 'rules', ruleIndex, ...(matches.length > 1 ? ['matches', index] : [])];
      return {
        match,
        age: route.creationTimestamp,
        routeName,
        rule: ruleIndex,
        index,
        origin: { key: { kind: route.kind, namespace: route.namespace, name: route.name }, path },
        http: {
          name: `${route.namespace}.${route.name}.${rule.name ?? ruleIndex}`,
          match: matchesOf(match, rule),
          ...(sharedAction ?? action.routeFor(match)),
          ...action.headers,
        },
      };
    });
  });
}

export function closeRankedRoute(rankedRoute: RankedRoute): RankedRoute {
  return { ...rankedRoute, http: closedRoute(rankedRoute.http) };
}

function matchesOf(match: HttpRouteMatch, { filters }: HttpRouteRule): HttpMatchRequest[] {
  const { headers, queryParams, method } = match;
  const modifier = filters.map(pathModifierOf).find((pathModifier) => pathModifier !== undefined);
  return pathMatches(match, modifier).map((path) => ({
    ...path,
    ...(method !== undefined && { method: { exact: method } }),
    ...(headers.length > 0 && { headers: valuesByName(headers, (name) => name.toLowerCase()) }),
    ...(queryParams.length > 0 && { queryParams: valuesByName(queryParams, (name) => name) }),
  }));
}

/** For several entries of one name, the first one applies. */
function valuesByName(
  matches: readonly ValueMatchByName[],
  nameOf: (name: string) => string,
): Readonly<Record<string, StringMatch>> {
  return Object.fromEntries(
    matches
      .toReversed()
      .map(({ type, name, value }): [string, StringMatch] => [
        nameOf(name),
        type === 'Exact' ? { exact: value } : { regex: value },
      ]),
  );
}

class RuleAction {
  readonly headers: Pick<HttpRoute, 'headers'>;
  readonly #route: Config<RouteObject>;
  readonly #rule: HttpRouteRule;
  readonly #path: string;
  readonly #entryPoint: EntryPoint;
  readonly #context: TranslationContext;
  readonly #status: 500 | 503;
  readonly #refusedRoute: HttpRoute;
  /** Empty for 503, which is Envoy's default. */
  readonly #missingStatus: Pick<HttpRoute, 'missingDestinationStatus'>;
  #forward: HttpRoute | undefined;

  constructor(
    route: Config<RouteObject>,
    rule: HttpRouteRule,
    path: string,
    entryPoint: EntryPoint,
    context: TranslationContext,
  ) {
    this.#route = route;
    this.#rule = rule;
    this.#path = path;
    this.#entryPoint = entryPoint;
    this.#context = context;
    this.#status = statusOf(route);
    this.#refusedRoute = { directResponse: { status: this.#status } };
    this.#missingStatus = this.#status === 500 ? { missingDestinationStatus: 500 } : {};
    this.headers = headersOf(rule.filters);
  }

  /** Returns the action of all matches, unless it depends on the match. */
  sharedRoute(): HttpRoute | undefined {
    const { filters } = this.#rule;
    const unknownIndex = filters.findIndex(({ type }) => !supportedFilters.has(type));
    if (unknownIndex >= 0) {
      // The filter must not be skipped, because it may restrict the destinations of requests.
      this.#warn(
        `filters[${unknownIndex}]`,
        `${filters[unknownIndex]!.type} is not supported: requests get ${this.#status}`,
      );
      return this.#refusedRoute;
    }
    const redirects = filters.some(({ requestRedirect }) => requestRedirect !== undefined);
    if (redirects) return undefined;
    const route = this.#destinations();
    if (route === undefined) return this.#refusedRoute;
    this.#forward = { route, ...this.#missingStatus, ...this.#mirrors(), ...timeoutsOf(this.#rule) };
    return filters.some(({ urlRewrite }) => urlRewrite !== undefined) ? undefined : this.#forward;
  }

  routeFor(match: HttpRouteMatch): HttpRoute {
    for (const { requestRedirect, urlRewrite } of this.#rule.filters) {
      if (requestRedirect !== undefined) return { redirect: redirectOf(requestRedirect, match, this.#entryPoint) };
      if (urlRewrite === undefined) continue;
      const { hostname, path } = urlRewrite;
      const rewrite = { ...(path && pathRewrite(path, match)), ...(hostname !== undefined && { authority: hostname }) };
      return { ...this.#forward, ...(Object.keys(rewrite).length > 0 && { rewrite }) };
    }
    return this.#forward ?? this.#refusedRoute;
  }

  #destinations(): readonly HttpRouteDestination[] | undefined {
    const { backendRefs } = this.#rule;
    if (backendRefs.length === 0) {
      this.#warn('backendRefs', `the list is empty: requests get ${this.#status}`);
      return undefined;
    }
    const weightedDestinations = backendRefs.map((ref, index) => this.#destination(ref, `backendRefs[${index}]`));
    const weightedBackends = weightedDestinations.filter(({ weight }) => weight !== 0);
    const usableDestinations = weightedBackends.filter(({ destination }) => destination !== noDestination);
    if (usableDestinations.length === 0) return undefined;
    const [onlyBackend] = weightedBackends;
    return weightedBackends.length === 1 ? [{ ...onlyBackend!, weight: 100 }] : weightedBackends;
  }

  #destination(ref: HttpBackendRef, path: string): HttpRouteDestination {
    const foundDestination = this.#destinationOf(ref);
    const lostDestination = { destination: noDestination, weight: ref.weight };
    const share = this.#rule.backendRefs.length > 1 ? 'its share of requests gets' : 'requests get';
    if ('missingText' in foundDestination) {
      this.#warn(path, `${foundDestination.missingText}: ${share} ${this.#status}`, foundDestination.warning);
      return lostDestination;
    }
    const unsupportedFilterIndex = ref.filters.findIndex(({ type }) => !backendFilters.has(type));
    if (unsupportedFilterIndex >= 0) {
      const { type } = ref.filters[unsupportedFilterIndex]!;
      this.#warn(
        `${path}.filters[${unsupportedFilterIndex}]`,
        `${type} is not supported for a backend: ${share} ${this.#status}`,
      );
      return lostDestination;
    }
    return { destination: foundDestination, weight: ref.weight, ...headersOf(ref.filters) };
  }

  #mirrors(): Pick<HttpRoute, 'mirrors'> {
    const mirrors = this.#rule.filters.flatMap(({ requestMirror }, index): HttpMirrorPolicy[] => {
      if (requestMirror === undefined) return [];
      const destination = this.#destinationOf(requestMirror.backendRef);
      if (!('missingText' in destination)) return [{ destination, ...percentageOf(requestMirror) }];
      this.#warn(
        `filters[${index}].requestMirror.backendRef`,
        `${destination.missingText}: requests are not mirrored`,
        destination.warning,
      );
      return [];
    });
    return mirrors.length > 0 ? { mirrors } : {};
  }

  #destinationOf(ref: BackendRef): ReturnType<typeof destinationOf> {
    return destinationOf(ref, this.#route, this.#context, this.#entryPoint.inMesh ?? false);
  }

  #warn(field: string, message: string, warning?: TranslationWarning): void {
    this.#context.warn(this.#route, `${this.#path}.${field}`, message, warning);
  }
}

export function unsupportedFilterOf({ filters, backendRefs }: HttpRouteRule): string | undefined {
  const ruleFilter = filters.find(({ type }) => !supportedFilters.has(type));
  const backendFilter = backendRefs.flatMap((ref) => ref.filters).find(({ type }) => !backendFilters.has(type));
  return (ruleFilter ?? backendFilter)?.type;
}

const backendFilters: ReadonlySet<string> = new Set(['RequestHeaderModifier', 'ResponseHeaderModifier']);
const supportedFilters: ReadonlySet<string> = new Set([
  ...backendFilters,
  'RequestRedirect',
  'URLRewrite',
  'RequestMirror',
]);

function headersOf(filters: readonly HttpRouteFilter[]): { headers?: Headers } {
  const headers: { request?: HeaderOperations; response?: HeaderOperations } = {};
  for (const { requestHeaderModifier, responseHeaderModifier } of filters) {
    if (requestHeaderModifier) headers.request = operationsOf(requestHeaderModifier);
    if (responseHeaderModifier) headers.response = operationsOf(responseHeaderModifier);
  }
  return Object.keys(headers).length > 0 ? { headers } : {};
}

/** Escapes `%`, which begins an operator in Envoy. For several entries of one name, the first one applies. */
function operationsOf({ set, add, remove }: HeaderModifier): HeaderOperations {
  const values = (items: HeaderModifier['set']): Record<string, string> =>
    Object.fromEntries(items.toReversed().map(({ name, value }) => [name.toLowerCase(), value.replaceAll('%', '%%')]));
  return {
    ...(set.length > 0 && { set: values(set) }),
    ...(add.length > 0 && { add: values(add) }),
    ...(remove.length > 0 && { remove }),
  };
}

const defaultPorts = { http: 80, https: 443 } as const;

/** The port defaults to that of the redirect's scheme, else of the listener. */
function redirectOf(
  { scheme, hostname, path, port, statusCode }: RequestRedirect,
  match: HttpRouteMatch,
  entryPoint: EntryPoint,
): HttpRedirect {
  // Envoy would keep the port of the request's authority, so the port must be set, even if it is the default.
  const keptParts =
    hostname === undefined && entryPoint.scheme !== undefined && entryPoint.port !== defaultPorts[entryPoint.scheme];
  const redirectPort = port ?? (scheme === undefined ? entryPoint.port : defaultPorts[scheme]);
  const redirectScheme = scheme ?? entryPoint.scheme;
  const isDefaultPort = redirectScheme !== undefined && redirectPort === defaultPorts[redirectScheme];
  return {
    redirectCode: statusCode,
    ...(scheme !== undefined && { scheme }),
    ...(hostname !== undefined && { authority: hostname }),
    ...(path && pathRedirect(path, match)),
    ...(redirectPort !== undefined && (!isDefaultPort || keptParts) && { port: redirectPort }),
    ...(isDefaultPort && keptParts && { includesPort: true }),
  };
}

function percentageOf({ percent, fraction }: RequestMirror): Pick<HttpMirrorPolicy, 'percentage'> {
  if (fraction !== undefined) return { percentage: { value: (fraction.numerator * 100) / fraction.denominator } };
  return percent === undefined ? {} : { percentage: { value: percent } };
}

/** `0s` disables a timeout, as if it were absent. */
function timeoutsOf({ timeouts = {} }: HttpRouteRule): Pick<HttpRoute, 'timeoutMs' | 'retries'> {
  const { requestMs, backendRequestMs } = timeouts;
  return {
    ...(requestMs !== undefined && { timeoutMs: requestMs }),
    ...(backendRequestMs !== undefined && backendRequestMs > 0 && { retries: { perTryTimeoutMs: backendRequestMs } }),
  };
}
