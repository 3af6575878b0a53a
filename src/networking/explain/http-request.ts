/** The way of a request through a connection manager: its route, the filters before the route, and what the route does. */
import type { FilterChain } from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import {
  type Route,
  VirtualHost_TlsRequirementType as TlsRequirement,
  type VirtualHost,
} from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { RouteConfiguration } from '../../gen/envoy/config/route/v3/route_pb.ts';
import type { HttpConnectionManager } from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import { combinedOutcome, divided } from './cluster-outcome.ts';
import type { Explanation } from './explanation.ts';
import { throughHttpFilters } from './filters/http-filters.ts';
import type { Subject } from './filters/subject.ts';
import { asGrpcResponse, isGrpc } from './grpc-response.ts';
import { endOfRoute, type Outcome, type Target, targetOf } from './outcome.ts';
import { normalizedPath } from './path.ts';
import type { ProxyConfiguration } from './proxy-configuration.ts';
import type { HttpQuestion } from './question.ts';
import { type RoutedRequest, routeOf, virtualHostOf } from './route-match.ts';
import { clientOf, schemeOf } from './trusted-headers.ts';

export interface RequestContext {
  readonly manager: HttpConnectionManager;
  readonly chain: FilterChain;
  readonly configuration: ProxyConfiguration;
  readonly subject: Subject;
  readonly isRedirected: boolean;
  readonly nowMs: number;
}

type RequestExplanation = Pick<Explanation, 'targets' | 'outcome' | 'routeConfiguration' | 'virtualHost' | 'route'>;

/** @param http `undefined`: the bytes on the connection are no HTTP */
export function throughHttp(context: RequestContext, http: HttpQuestion | undefined): RequestExplanation {
  const { manager, configuration } = context;
  if (http === undefined) return { targets: [], outcome: noHttp(context.subject) };
  const routeConfiguration = nameOfRoutes(manager);
  const routes =
    manager.routeSpecifier.case === 'routeConfig'
      ? manager.routeSpecifier.value
      : configuration.routes.get(routeConfiguration);
  const found = { targets: [], routeConfiguration };
  if (routes === undefined) return { ...found, outcome: noRoute('the proxy has no such route configuration') };
  const request = routed(http, context);
  if (request === undefined)
    return { ...found, outcome: malformed('the path is refused', '', 'path_normalization_failed') };
  return { routeConfiguration, ...throughRoutes(context, routes, request) };
}

function throughRoutes(
  context: RequestContext,
  routes: RouteConfiguration,
  request: RoutedRequest,
): RequestExplanation {
  const subject = { ...context.subject, request, metadata: { ...context.subject.metadata } };
  const choose = (): Chosen => chosenRoute(routes, { ...request, metadata: subject.metadata }, context);
  let chosen = choose();
  const shares = throughHttpFilters(context.manager.httpFilters, {
    subject,
    routeConfigs: () => configsOf(routes, chosen),
    clearRoute: () => {
      chosen = choose();
    },
    nowMs: context.nowMs,
    lacksFetchedKeys: context.configuration.lacksFetchedKeys === true,
  });
  const ended = shares.reduce((sum, { share }) => sum + share, 0);
  const { virtualHost, route, targets } = chosen;
  const outcome = divided([...shares, { share: Math.max(0, 1 - ended), outcome: chosen.outcome }]);
  return {
    ...(virtualHost && { virtualHost }),
    ...(route && { route }),
    targets,
    outcome: isGrpc(request) ? asGrpcResponse(outcome) : outcome,
  };
}

interface Chosen {
  readonly virtualHost?: VirtualHost;
  readonly route?: Route;
  readonly targets: readonly Target[];
  /** Of requests that all filters let pass. */
  readonly outcome: Outcome;
}

function chosenRoute(routes: RouteConfiguration, request: RoutedRequest, context: RequestContext): Chosen {
  const virtualHost = virtualHostOf(routes, request.authority);
  if (virtualHost === undefined) return { targets: [], outcome: noRoute(withoutHost(request.authority, routes)) };
  if (virtualHost.requireTls === TlsRequirement.ALL && request.scheme !== 'https') {
    const to = `https://${request.authority}${request.path}`;
    return { virtualHost, targets: [], outcome: { kind: 'redirected', status: 301, to } };
  }
  const route = routeOf(virtualHost, request);
  if (route === undefined) return { virtualHost, targets: [], outcome: noRoute('no route matches the request') };
  const { outcome, clusters, missingStatus } = endOfRoute(route, request);
  const targets = clusters.map(({ name, weight }) => targetOf(name, weight, context.configuration));
  const carried = { isHttp: true, isRedirected: context.isRedirected, ...(missingStatus && { missingStatus }) };
  return { virtualHost, route, targets, outcome: outcome ?? combinedOutcome(targets, carried) };
}

function configsOf(routes: RouteConfiguration, { route, virtualHost, targets }: Chosen) {
  const configs = [route, virtualHost, routes].flatMap((one) => (one ? [one.typedPerFilterConfig] : []));
  return { configs, clusters: targets.map(({ name }) => name) };
}

function noRoute(why: string): Outcome {
  return { kind: 'no route', status: 404, flag: 'NR', details: 'route_not_found', why };
}

function malformed(why: string, flag: string, details = ''): Outcome {
  return { kind: 'malformed', status: 400, ...(flag && { flag }), ...(details && { details }), why };
}

/** An HTTP/2 connection is closed without a response. */
function noHttp({ tls, question }: Subject): Outcome {
  const isHttp2 = tls !== undefined && question.tls?.alpn.includes('h2') === true;
  const why = 'the filter chain expects HTTP, and this is something else';
  return isHttp2 ? { kind: 'closed', flag: 'DPE', why } : malformed(why, 'DPE');
}

const maxNamedHosts = 5;

/** The sentence for a host that no virtual host has. It lists hosts, since the one in the question may be misspelt. */
function withoutHost(authority: string, { name, virtualHosts }: RouteConfiguration): string {
  const known = virtualHosts.flatMap(({ domains }) => domains.slice(0, 1));
  const more = known.length > maxNamedHosts ? ` and ${known.length - maxNamedHosts} more` : '';
  const there = known.length === 0 ? 'none' : `${known.slice(0, maxNamedHosts).join(', ')}${more}`;
  return `no virtual host of route configuration ${name} has the name ${authority}; there is ${there}`;
}

function nameOfRoutes({ routeSpecifier }: HttpConnectionManager): string {
  if (routeSpecifier.case === 'rds') return routeSpecifier.value.routeConfigName;
  return routeSpecifier.case === 'routeConfig' ? routeSpecifier.value.name : '';
}

/** The request as it is when it is routed; `undefined` if Envoy refuses it before. */
function routed(http: HttpQuestion, { manager, subject }: RequestContext): RoutedRequest | undefined {
  const path = normalizedPath(http.path, manager);
  if (path === undefined) return undefined;
  const stripsPort = manager.stripPortMode.case === 'stripAnyHostPort' && manager.stripPortMode.value;
  const authority = stripsPort ? http.authority.replace(/:\d+$/, '') : http.authority;
  const scheme = schemeOf(http, manager, subject.tls !== undefined);
  const headers = { 'x-request-id': '(generated)', ...http.headers, 'x-forwarded-proto': scheme };
  return { ...http, path, authority, scheme, headers };
}

/** The client as the proxy knows it: by the headers that it trusts. */
export function withClient(subject: Subject, http: HttpQuestion | undefined, manager: HttpConnectionManager): Subject {
  const remoteAddress = http && clientOf(http, manager, subject.question.source?.address);
  return remoteAddress === undefined ? subject : { ...subject, remoteAddress };
}
