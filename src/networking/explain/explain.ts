/**
 * What a proxy does with a connection or a request: the way through what it was given, decided as Envoy decides it.
 * Filters are named, not run: a route that is found may still be denied, delayed or answered by a filter before it.
 */
import type { DescMessage, Message, MessageShape } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import type { Cluster } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { ClusterLoadAssignment } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import type { Filter, FilterChain } from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import {
  type Route,
  VirtualHost_TlsRequirementType as TlsRequirement,
  type VirtualHost,
} from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { RouteConfiguration } from '../../gen/envoy/config/route/v3/route_pb.ts';
import {
  type HttpConnectionManager,
  HttpConnectionManagerSchema,
} from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import { type TcpProxy, TcpProxySchema } from '../../gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.ts';
import { filterChainOf } from './filter-chain-match.ts';
import { type Inspected, inspect } from './inspected.ts';
import { type FoundListener, listenerOf } from './listener-match.ts';
import { endOfRoute, type Outcome, type Target } from './outcome.ts';
import { normalizedPath } from './path.ts';
import type { HttpQuestion, Question } from './question.ts';
import { type RoutedRequest, routeOf, virtualHostOf } from './route-match.ts';

/** What a proxy has. */
export interface ProxyConfiguration {
  readonly listeners: readonly Listener[];
  readonly routes: ReadonlyMap<string, RouteConfiguration>;
  readonly clusters: ReadonlyMap<string, Cluster>;
  /** Assignments by the name that the cluster asks for. */
  readonly endpoints: ReadonlyMap<string, ClusterLoadAssignment>;
  /** Why endpoints of its service are not in a cluster, one sentence each; absent: the objects of the mesh are unknown. */
  readonly explainEndpoints?: (cluster: string) => readonly string[];
}

export interface Explanation {
  readonly listener?: FoundListener;
  readonly inspected?: Inspected;
  readonly chain?: FilterChain;
  /** Names of the network filters, then of those of HTTP, in their order. */
  readonly filters: readonly string[];
  readonly routeConfiguration?: string;
  readonly virtualHost?: VirtualHost;
  readonly route?: Route;
  readonly outcome: Outcome;
  /** What it may be sent to; several where weights decide. */
  readonly targets: readonly Target[];
}

export function explain(configuration: ProxyConfiguration, question: Question): Explanation {
  const nothing = { filters: [], targets: [] };
  const listener = listenerOf(configuration.listeners, question);
  if (listener === undefined)
    return { ...nothing, outcome: { kind: 'closed', why: 'no listener takes the connection' } };
  const inspected = inspect(listener.listener, question);
  const chain = filterChainOf(listener.listener, question, inspected);
  const met = { ...nothing, listener, inspected };
  if (chain === undefined)
    return { ...met, outcome: { kind: 'closed', why: 'no filter chain matches the connection' } };
  return { listener, inspected, chain, ...throughChain(chain, configuration, question) };
}

type Rest = Pick<Explanation, 'filters' | 'outcome' | 'targets'> & Partial<Explanation>;

function throughChain(chain: FilterChain, configuration: ProxyConfiguration, question: Question): Rest {
  const filters = chain.filters.map(({ name }) => name);
  const endsTls = chain.transportSocket !== undefined;
  if (endsTls && question.tls === undefined) {
    return { filters, targets: [], outcome: { kind: 'closed', why: 'the filter chain expects TLS' } };
  }
  const http = lastOf(chain.filters, HttpConnectionManagerSchema);
  if (http !== undefined) return throughHttp(http, filters, endsTls, configuration, question);
  const tcp = lastOf(chain.filters, TcpProxySchema);
  if (tcp !== undefined) return throughTcp(tcp, filters, configuration, question);
  const last = filters.at(-1) ?? 'nothing';
  return { filters, targets: [], outcome: { kind: 'other', why: `${last} decides what becomes of it` } };
}

function throughTcp(
  tcp: TcpProxy,
  filters: readonly string[],
  configuration: ProxyConfiguration,
  { tls }: Question,
): Rest {
  const { clusterSpecifier: specifier } = tcp;
  const sniDecides = filters.includes('envoy.filters.network.sni_cluster') && tls?.sni;
  if (sniDecides) return reached(filters, [{ name: sniDecides, weight: 1 }], configuration);
  if (specifier.case === 'cluster') return reached(filters, [{ name: specifier.value, weight: 1 }], configuration);
  return reached(filters, specifier.value?.clusters ?? [], configuration);
}

function reached(
  filters: readonly string[],
  clusters: readonly { readonly name: string; readonly weight: number }[],
  configuration: ProxyConfiguration,
): Rest {
  const targets = clusters.map(({ name, weight }) => targetOf(name, weight, configuration));
  return { filters, targets, outcome: { kind: 'forwarded' } };
}

function throughHttp(
  manager: HttpConnectionManager,
  networkFilters: readonly string[],
  endsTls: boolean,
  configuration: ProxyConfiguration,
  { http, tls }: Question,
): Rest {
  const filters = [...networkFilters, ...manager.httpFilters.map(({ name }) => name)];
  if (http === undefined || (tls !== undefined && !endsTls)) {
    return {
      filters,
      targets: [],
      outcome: { kind: 'closed', why: 'the filter chain expects HTTP, and this is something else' },
    };
  }
  const routeConfiguration = nameOfRoutes(manager);
  const routes =
    manager.routeSpecifier.case === 'routeConfig'
      ? manager.routeSpecifier.value
      : configuration.routes.get(routeConfiguration);
  const met = { filters, targets: [], routeConfiguration };
  if (routes === undefined)
    return { ...met, outcome: { kind: 'no route', status: 404, why: 'the proxy has no such route configuration' } };
  const request = routed(http, manager, endsTls);
  if (request === undefined) return { ...met, outcome: { kind: 'no route', status: 400, why: 'the path is refused' } };
  const virtualHost = virtualHostOf(routes, request.authority);
  if (virtualHost === undefined) {
    return {
      ...met,
      outcome: { kind: 'no route', status: 404, why: withoutHost(request.authority, routes) },
    };
  }
  if (virtualHost.requireTls === TlsRequirement.ALL && request.scheme !== 'https') {
    return {
      ...met,
      virtualHost,
      outcome: { kind: 'redirected', status: 301, to: `https://${request.authority}${request.path}` },
    };
  }
  const route = routeOf(virtualHost, request);
  if (route === undefined)
    return { ...met, virtualHost, outcome: { kind: 'no route', status: 404, why: 'no route matches the request' } };
  const { outcome, clusters } = endOfRoute(route, request);
  const targets = clusters.map(({ name, weight }) => targetOf(name, weight, configuration));
  return { ...met, virtualHost, route, outcome, targets };
}

const mostNamed = 5;

/** The sentence for a host that no virtual host has. Hosts that there are stand in it, since the one in the question may be misspelt. */
function withoutHost(authority: string, { name, virtualHosts }: RouteConfiguration): string {
  const known = virtualHosts.flatMap(({ domains }) => domains.slice(0, 1));
  const more = known.length > mostNamed ? ` and ${known.length - mostNamed} more` : '';
  const there = known.length === 0 ? 'none' : `${known.slice(0, mostNamed).join(', ')}${more}`;
  return `no virtual host of route configuration ${name} has the name ${authority}; there is ${there}`;
}

function nameOfRoutes({ routeSpecifier }: HttpConnectionManager): string {
  if (routeSpecifier.case === 'rds') return routeSpecifier.value.routeConfigName;
  return routeSpecifier.case === 'routeConfig' ? routeSpecifier.value.name : '';
}

/** The request as it is when it is routed; undefined when Envoy refuses it before. */
function routed(http: HttpQuestion, manager: HttpConnectionManager, endsTls: boolean): RoutedRequest | undefined {
  const path = normalizedPath(http.path, manager);
  if (path === undefined) return undefined;
  const stripsPort = manager.stripPortMode.case === 'stripAnyHostPort' && manager.stripPortMode.value;
  const authority = stripsPort ? http.authority.replace(/:\d+$/, '') : http.authority;
  return { ...http, path, authority, scheme: endsTls ? 'https' : 'http' };
}

function targetOf(name: string, weight: number, { clusters, endpoints, explainEndpoints }: ProxyConfiguration): Target {
  const cluster = clusters.get(name);
  const endpointsName = cluster?.edsClusterConfig?.serviceName || name;
  const assignment = cluster && (endpoints.get(endpointsName) ?? cluster.loadAssignment);
  const missingEndpoints = name.startsWith('outbound') ? (explainEndpoints?.(endpointsName) ?? []) : [];
  return {
    ...{ name, weight },
    ...(cluster && { cluster }),
    ...(assignment && { assignment }),
    ...(missingEndpoints.length > 0 && { missingEndpoints }),
  };
}

function lastOf<Desc extends DescMessage>(filters: readonly Filter[], schema: Desc): MessageShape<Desc> | undefined {
  const last = filters.at(-1)?.configType;
  return last?.case === 'typedConfig' ? (anyUnpack(last.value, schema) as MessageShape<Desc> & Message) : undefined;
}
