import type { FilterChain } from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import {
  type Route,
  VirtualHost_TlsRequirementType as TlsRequirement,
  type VirtualHost,
} from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { RouteConfiguration } from '../../gen/envoy/config/route/v3/route_pb.ts';
import type { HttpConnectionManager } from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import { combinedOutcome, dividedOutcome, isDynamicForwardProxy } from './cluster-outcome.ts';
import type { Explanation } from './explanation.ts';
import { evaluateHttpFilters } from './filters/http-filters.ts';
import type { Subject } from './filters/subject.ts';
import { isGrpc, toGrpcResponse } from './grpc-response.ts';
import { outcomeOfRoute, type RequestOutcome, type Target, targetOf } from './outcome.ts';
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

/** @param httpQuestion `undefined` if the connection is not HTTP */
export function explainHttp(context: RequestContext, httpQuestion: HttpQuestion | undefined): RequestExplanation {
  const { manager, configuration } = context;
  if (httpQuestion === undefined) return { targets: [], outcome: nonHttpOutcome(context.subject) };
  const codecOutcome = codecRejectionOf(httpQuestion, manager);
  if (codecOutcome !== undefined) return { targets: [], outcome: codecOutcome };
  const http = readByCodec(httpQuestion);
  const routeConfiguration = nameOfRoutes(manager);
  const routes =
    manager.routeSpecifier.case === 'routeConfig'
      ? manager.routeSpecifier.value
      : configuration.routes.get(routeConfiguration);
  const baseResult = { targets: [], routeConfiguration };
  if (!isWithHost(http)) {
    const virtualHost = routes && onlyVirtualHost(routes);
    const outcome = malformedRequest('the request has no Host header', '', 'missing_host_header');
    return { ...baseResult, ...(virtualHost && { virtualHost }), outcome };
  }
  if (routes === undefined) return { ...baseResult, outcome: noRoute('the proxy has no such route configuration') };
  const request = requestToRoute(http, context);
  if (request === undefined)
    return { ...baseResult, outcome: malformedRequest('the path is invalid', '', 'path_normalization_failed') };
  return { routeConfiguration, ...explainRoutes(context, routes, request) };
}

function explainRoutes(
  context: RequestContext,
  routes: RouteConfiguration,
  request: RoutedRequest,
): RequestExplanation {
  const subject = { ...context.subject, request, metadata: { ...context.subject.metadata } };
  const choose = (): ChosenRoute => chosenRoute(routes, { ...request, metadata: subject.metadata }, context);
  let selectedRoute = choose();
  const outcomeShares = evaluateHttpFilters(context.manager.httpFilters, {
    subject,
    routeConfigs: () => configsOf(routes, selectedRoute),
    clearRoute: () => {
      selectedRoute = choose();
    },
    resolvesHost: () =>
      selectedRoute.targets.some(({ cluster }) => cluster !== undefined && isDynamicForwardProxy(cluster)),
    nowMs: context.nowMs,
    lacksFetchedKeys: context.configuration.lacksFetchedKeys === true,
  });
  const completedShare = outcomeShares.reduce((sum, { share }) => sum + share, 0);
  const { virtualHost, route, targets } = selectedRoute;
  const outcome = dividedOutcome([
    ...outcomeShares,
    { share: Math.max(0, 1 - completedShare), outcome: selectedRoute.outcome },
  ]);
  return {
    ...(virtualHost && { virtualHost }),
    ...(route && { route }),
    targets,
    outcome: isGrpc(request) ? toGrpcResponse(outcome) : outcome,
  };
}

interface ChosenRoute {
  readonly virtualHost?: VirtualHost;
  readonly route?: Route;
  readonly targets: readonly Target[];
  readonly outcome: RequestOutcome;
}

function chosenRoute(routes: RouteConfiguration, request: RoutedRequest, context: RequestContext): ChosenRoute {
  const virtualHost = virtualHostOf(routes, request.authority);
  if (virtualHost === undefined) return { targets: [], outcome: noRoute(missingHostText(request.authority, routes)) };
  if (virtualHost.requireTls === TlsRequirement.ALL && request.scheme !== 'https') {
    const redirectUrl = `https://${request.authority}${request.path}`;
    return { virtualHost, targets: [], outcome: { kind: 'redirected', status: 301, to: redirectUrl } };
  }
  const route = routeOf(virtualHost, request);
  if (route === undefined) return { virtualHost, targets: [], outcome: noRoute('no route matches the request') };
  const { outcome, clusters, missingStatus } = outcomeOfRoute(route, request);
  const targets = clusters.map(({ name, weight }) => targetOf(name, weight, context.configuration));
  const carriedProtocol = { isHttp: true, isRedirected: context.isRedirected, ...(missingStatus && { missingStatus }) };
  return { virtualHost, route, targets, outcome: outcome ?? combinedOutcome(targets, carriedProtocol) };
}

function configsOf(routes: RouteConfiguration, { route, virtualHost, targets }: ChosenRoute) {
  const configs = [route, virtualHost, routes].flatMap((level) => (level ? [level.typedPerFilterConfig] : []));
  return { configs, clusters: targets.map(({ name }) => name) };
}

function noRoute(reason: string): RequestOutcome {
  return { kind: 'no route', status: 404, flag: 'NR', details: 'route_not_found', why: reason };
}

function malformedRequest(reason: string, flag: string, details = ''): RequestOutcome {
  return { kind: 'malformed', status: 400, ...(flag && { flag }), ...(details && { details }), why: reason };
}

const defaultMaxHeadersKb = 60;

/** HTTP/1 methods that Envoy's parser accepts, case-sensitive. */
const methods: ReadonlySet<string> = new Set(
  (
    'DELETE GET HEAD POST PUT CONNECT OPTIONS TRACE COPY LOCK MKCOL MOVE PROPFIND PROPPATCH SEARCH UNLOCK BIND REBIND UNBIND ACL REPORT ' +
    'MKACTIVITY CHECKOUT MERGE M-SEARCH NOTIFY SUBSCRIBE UNSUBSCRIBE PATCH PURGE MKCALENDAR LINK UNLINK SOURCE'
  ).split(' '),
);

/** Returns the response to a request that Envoy rejects before routing, and `undefined` if Envoy accepts it. */
function codecRejectionOf(http: HttpQuestion, manager: HttpConnectionManager): RequestOutcome | undefined {
  const maxBytes = 1_024 * (manager.maxRequestHeadersKb ?? defaultMaxHeadersKb);
  const headerSize = headerBytes(http);
  const reason = `the request has ${headerSize} bytes of headers, the maximum is ${maxBytes}`;
  if (http.version === 'HTTP/2') return headerSize > maxBytes ? { kind: 'closed', flag: 'DR', why: reason } : undefined;
  if (!methods.has(http.method)) {
    return malformedRequest(`the method ${http.method} is unknown`, 'DPE', 'http1.codec_error');
  }
  if (http.method === 'CONNECT' && http.path.startsWith('/')) {
    return malformedRequest('the target of CONNECT must be HOST:PORT', 'DPE', 'http1.invalid_url');
  }
  if (headerSize > maxBytes) {
    return { kind: 'malformed', status: 431, flag: 'DPE', details: 'http1.headers_too_large', why: reason };
  }
  if (http.version === 'HTTP/1.0' && manager.httpProtocolOptions?.acceptHttp10 !== true) {
    const reason = 'HTTP/1.0 is not accepted (PILOT_HTTP10)';
    return { kind: 'malformed', status: 426, flag: 'DPE', details: 'low_version', why: reason };
  }
  return undefined;
}

function headerBytes({ headers, path, authority = '' }: HttpQuestion): number {
  return Object.entries(headers).reduce(
    (sum, [name, value]) => sum + name.length + value.length,
    path.length + authority.length,
  );
}

/** Envoy uses the only virtual host for requests without a Host header. */
function onlyVirtualHost({ virtualHosts }: RouteConfiguration): VirtualHost | undefined {
  const [firstHost, ...otherHosts] = virtualHosts;
  return otherHosts.length === 0 && firstHost?.domains.join() === '*' ? firstHost : undefined;
}

/** Trims header values as Envoy's HTTP/1 codec does. A target with a host (`GET http://host/path`, `CONNECT host:port`) replaces the Host header. */
function readByCodec(httpQuestion: HttpQuestion): HttpQuestion {
  if (httpQuestion.version === 'HTTP/2') return httpQuestion;
  const headers = Object.fromEntries(Object.entries(httpQuestion.headers).map(([name, value]) => [name, value.trim()]));
  const http = { ...httpQuestion, headers };
  if (http.method === 'CONNECT') return { ...http, authority: http.path, path: '' };
  const [, authority, path] = /^https?:\/\/([^/?#]+)(.*)$/is.exec(http.path) ?? [];
  if (authority === undefined) return http;
  return { ...http, authority, path: path === undefined || path === '' ? '/' : path };
}

type HttpWithHost = HttpQuestion & { readonly authority: string };

function isWithHost(http: HttpQuestion): http is HttpWithHost {
  return http.authority !== undefined;
}

/** HTTP/2 connections are closed without a response. */
function nonHttpOutcome({ tls, question }: Subject): RequestOutcome {
  const isHttp2 = tls !== undefined && question.tls?.alpn.includes('h2') === true;
  const reason = 'the filter chain expects HTTP, got another protocol';
  return isHttp2 ? { kind: 'closed', flag: 'DPE', why: reason } : malformedRequest(reason, 'DPE');
}

const maxNamedHosts = 5;

/** Lists known hosts, because the host in the question may be misspelled. */
function missingHostText(authority: string, { name, virtualHosts }: RouteConfiguration): string {
  const firstDomains = virtualHosts.flatMap(({ domains }) => domains.slice(0, 1));
  const omittedText = firstDomains.length > maxNamedHosts ? ` and ${firstDomains.length - maxNamedHosts} more` : '';
  const domainsText =
    firstDomains.length === 0 ? 'none' : `${firstDomains.slice(0, maxNamedHosts).join(', ')}${omittedText}`;
  return `no virtual host of route configuration ${name} matches ${authority}; domains: ${domainsText}`;
}

function nameOfRoutes({ routeSpecifier }: HttpConnectionManager): string {
  if (routeSpecifier.case === 'rds') return routeSpecifier.value.routeConfigName;
  return routeSpecifier.case === 'routeConfig' ? routeSpecifier.value.name : '';
}

function requestToRoute(http: HttpWithHost, { manager, subject }: RequestContext): RoutedRequest | undefined {
  const path = normalizedPath(http.path, manager);
  if (path === undefined) return undefined;
  const stripsPort = manager.stripPortMode.case === 'stripAnyHostPort' && manager.stripPortMode.value;
  const authority = stripsPort ? http.authority.replace(/:\d+$/, '') : http.authority;
  const scheme = schemeOf(http, manager, subject.tls !== undefined);
  const headers = { 'x-request-id': '(generated)', ...http.headers, 'x-forwarded-proto': scheme };
  return { ...http, path, authority, scheme, headers };
}

export function withClient(subject: Subject, http: HttpQuestion | undefined, manager: HttpConnectionManager): Subject {
  const remoteAddress = http && clientOf(http, manager, subject.question.source?.address);
  return remoteAddress === undefined ? subject : { ...subject, remoteAddress };
}
