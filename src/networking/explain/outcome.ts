import type { Cluster } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { ClusterLoadAssignment } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import {
  RouteAction_ClusterNotFoundResponseCode as MissingCode,
  type RedirectAction,
  RedirectAction_RedirectResponseCode as RedirectCode,
  type Route,
  type RouteAction,
} from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { ProxyConfiguration } from './proxy-configuration.ts';
import type { RoutedRequest } from './route-match.ts';

export interface LocalResponse {
  /** `undefined` if a TCP connection is closed. */
  readonly status?: number;
  /** `grpc-status` of the response. If `status` is absent, a proxyless gRPC client fails the call with this code. */
  readonly grpcStatus?: number;
  /** `%RESPONSE_FLAGS%`, such as NR, NC, UH, UF, FI, UAEX, DPE. */
  readonly flag?: string;
  /** Prefix of `%RESPONSE_CODE_DETAILS%`. */
  readonly details?: string;
}

export type RequestOutcome =
  | { readonly kind: 'forwarded' }
  /** A gRPC server handles the call. */
  | { readonly kind: 'accepted' }
  | { readonly kind: 'redirected'; readonly status: number; readonly grpcStatus?: number; readonly to: string }
  | { readonly kind: 'answered'; readonly status: number; readonly grpcStatus?: number; readonly body: string }
  | (LocalResponse & {
      readonly kind:
        | 'no listener'
        | 'no route'
        | 'no cluster'
        | 'no endpoints'
        | 'upstream refused'
        | 'denied'
        | 'aborted'
        | 'preflight'
        | 'malformed';
      readonly why: string;
    })
  | { readonly kind: 'closed'; readonly why: string; readonly flag?: string }
  /** The outcome depends on a filter that calls another program or runs code. */
  | { readonly kind: 'not decided'; readonly filter: string; readonly why: string }
  /** The outcome is random, because of weighted clusters or faults of less than 100 %. */
  | { readonly kind: 'divided'; readonly shares: readonly OutcomeShare[] }
  /** A filter of another protocol handles the request or connection. */
  | { readonly kind: 'other'; readonly why: string };

export interface OutcomeShare {
  /** Fraction of all requests, from 0 to 1. */
  readonly share: number;
  readonly outcome: RequestOutcome;
}

export interface Target {
  readonly name: string;
  /** Weight as a fraction of the sum of weights. */
  readonly weight: number;
  /** Absent if the proxy lacks the cluster, so that it responds with 503. */
  readonly cluster?: Cluster;
  /** Absent if the endpoints are unknown. */
  readonly assignment?: ClusterLoadAssignment;
  readonly missingEndpoints?: readonly string[];
}

export function targetOf(
  name: string,
  weight: number,
  { clusters, endpoints, explainEndpoints }: ProxyConfiguration,
): Target {
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

interface WeightedTarget {
  readonly name: string;
  readonly weight: number;
}

interface RouteOutcome {
  readonly outcome?: RequestOutcome;
  readonly clusters: readonly WeightedTarget[];
  readonly missingStatus?: number;
}

export function outcomeOfRoute({ action }: Route, request: RoutedRequest): RouteOutcome {
  switch (action.case) {
    case 'route':
      return {
        clusters: clustersOf(action.value, request),
        missingStatus: missingStatuses[action.value.clusterNotFoundResponseCode] ?? 503,
      };
    case 'redirect':
      return { outcome: redirection(action.value, request), clusters: [] };
    case 'directResponse': {
      const { status, body } = action.value;
      const text = body?.specifier.case === 'inlineString' ? body.specifier.value : '';
      return { outcome: { kind: 'answered', status, body: text }, clusters: [] };
    }
    default:
      return { outcome: { kind: 'other', why: `the route's action is ${action.case ?? 'not set'}` }, clusters: [] };
  }
}

const missingStatuses: Readonly<Record<MissingCode, number>> = {
  [MissingCode.SERVICE_UNAVAILABLE]: 503,
  [MissingCode.NOT_FOUND]: 404,
  [MissingCode.INTERNAL_SERVER_ERROR]: 500,
};

function clustersOf({ clusterSpecifier: specifier }: RouteAction, request: RoutedRequest): readonly WeightedTarget[] {
  switch (specifier.case) {
    case 'cluster':
      return [{ name: specifier.value, weight: 1 }];
    case 'clusterHeader':
      return [{ name: request.headers[specifier.value.toLowerCase()] ?? '', weight: 1 }];
    case 'weightedClusters':
      return specifier.value.clusters.map(({ name, weight }) => ({ name, weight: weight ?? 0 }));
    default:
      return [];
  }
}

const statuses: Readonly<Record<RedirectCode, number>> = {
  [RedirectCode.MOVED_PERMANENTLY]: 301,
  [RedirectCode.FOUND]: 302,
  [RedirectCode.SEE_OTHER]: 303,
  [RedirectCode.TEMPORARY_REDIRECT]: 307,
  [RedirectCode.PERMANENT_REDIRECT]: 308,
};

function redirection(redirect: RedirectAction, request: RoutedRequest): RequestOutcome {
  const { schemeRewriteSpecifier: rewrite, pathRewriteSpecifier: path, hostRedirect, portRedirect } = redirect;
  const redirectsToHttps = rewrite.case === 'httpsRedirect' && rewrite.value;
  const scheme = rewrite.case === 'schemeRedirect' ? rewrite.value : redirectsToHttps ? 'https' : request.scheme;
  const host = hostRedirect || (portRedirect === 0 ? request.authority : request.authority.replace(/:\d+$/, ''));
  const port = portRedirect === 0 ? '' : `:${portRedirect}`;
  const redirectPath = path.case === 'pathRedirect' ? path.value : request.path;
  const note = path.case === 'prefixRewrite' || path.case === 'regexRewrite' ? ' (its path rewritten)' : '';
  return {
    kind: 'redirected',
    status: statuses[redirect.responseCode] ?? 301,
    to: `${scheme}://${host}${port}${redirectPath}${note}`,
  };
}
