/** What a route does with a request. */
import type { Cluster } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { ClusterLoadAssignment } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import {
  type RedirectAction,
  RedirectAction_RedirectResponseCode as RedirectCode,
  type Route,
  type RouteAction,
} from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { RoutedRequest } from './route-match.ts';

export type Outcome =
  | { readonly kind: 'forwarded' }
  | { readonly kind: 'redirected'; readonly status: number; readonly to: string }
  | { readonly kind: 'answered'; readonly status: number; readonly body: string }
  | { readonly kind: 'no route'; readonly status: number; readonly why: string }
  | { readonly kind: 'closed'; readonly why: string }
  /** A filter of its own decides. */
  | { readonly kind: 'other'; readonly why: string };

export interface Target {
  readonly name: string;
  /** The cluster's share of all weights together. */
  readonly weight: number;
  /** Absent: the proxy has no such cluster, and answers 503. */
  readonly cluster?: Cluster;
  /** Absent: the endpoints are not listed. */
  readonly assignment?: ClusterLoadAssignment;
  /** Why endpoints of the service are not in the cluster. */
  readonly missingEndpoints?: readonly string[];
}

interface Weighted {
  readonly name: string;
  readonly weight: number;
}

export function endOfRoute(
  { action }: Route,
  request: RoutedRequest,
): { outcome: Outcome; clusters: readonly Weighted[] } {
  switch (action.case) {
    case 'route':
      return { outcome: { kind: 'forwarded' }, clusters: clustersOf(action.value, request) };
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

function clustersOf({ clusterSpecifier: specifier }: RouteAction, request: RoutedRequest): readonly Weighted[] {
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

function redirection(redirect: RedirectAction, request: RoutedRequest): Outcome {
  const { schemeRewriteSpecifier: rewrite, pathRewriteSpecifier: path, hostRedirect, portRedirect } = redirect;
  const toHttps = rewrite.case === 'httpsRedirect' && rewrite.value;
  const scheme = rewrite.case === 'schemeRedirect' ? rewrite.value : toHttps ? 'https' : request.scheme;
  const host = hostRedirect || (portRedirect === 0 ? request.authority : request.authority.replace(/:\d+$/, ''));
  const port = portRedirect === 0 ? '' : `:${portRedirect}`;
  const to = path.case === 'pathRedirect' ? path.value : request.path;
  const note = path.case === 'prefixRewrite' || path.case === 'regexRewrite' ? ' (its path rewritten)' : '';
  return {
    kind: 'redirected',
    status: statuses[redirect.responseCode] ?? 301,
    to: `${scheme}://${host}${port}${to}${note}`,
  };
}
