/** Converts routes to the form that gRPC accepts. A single unknown field makes gRPC reject the route configuration. */

import { create } from '@bufbuild/protobuf';
import {
  type RetryPolicy,
  RetryPolicySchema,
  type Route,
  type RouteAction,
  RouteActionSchema,
  RouteSchema,
} from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import { HTTPFaultSchema } from '../../gen/envoy/extensions/filters/http/fault/v3/fault_pb.ts';
import { FractionalPercent_DenominatorType } from '../../gen/envoy/type/v3/percent_pb.ts';
import { grpcStatusNames } from '../../model/fields/grpc-status.ts';
import { peerHeader } from '../../model/standard-metrics/peer-claim.ts';
import { originsOf, withOrigins } from '../inputs/message-origin.ts';
import { pack } from '../messages/any.ts';
import type { Init } from '../messages/init.ts';
import { faultFilter } from '../routes/translate/fault.ts';
import { type Limitation, specificOrigins, type WithLimitations } from './limitation.ts';
import { grpcMatch } from './route-conditions.ts';

/** Retry conditions that gRPC supports (A44). */
const retriableConditions: ReadonlySet<string> = new Set([
  'cancelled',
  'deadline-exceeded',
  'internal',
  'resource-exhausted',
  'unavailable',
]);

/** @param cluster cluster of the port, for a route whose action gRPC does not support */
export function grpcRoute(route: Route, cluster: string): WithLimitations<Route | undefined> {
  const allOrigins = originsOf(route);
  const origins = specificOrigins(allOrigins);
  const limits = (texts: readonly string[]): readonly Limitation[] => texts.map((text) => ({ origins, text }));
  const match = route.match && grpcMatch(route.match);
  if (match === undefined || typeof match === 'string') {
    return { message: undefined, limitations: limits([`the match is left out: ${match ?? 'it is empty'}`]) };
  }
  const { typedPerFilterConfig, action } = route;
  const fault = action.case === 'route' ? typedPerFilterConfig[faultFilter] : abortFilter;
  const unsupportedFilters = Object.keys(typedPerFilterConfig).filter((filter) => filter !== faultFilter);
  const routeMessage = create(RouteSchema, {
    name: route.name,
    match,
    action: { case: 'route', value: action.case === 'route' ? grpcAction(action.value) : routeToCluster(cluster) },
    ...(fault && { typedPerFilterConfig: { [faultFilter]: fault } }),
  });
  const texts = [
    ...unsupportedFilters.map((filter) => `${filterText[filter] ?? filter} is ignored`),
    ...(hasHeaderChanges(route) ? ['changes of headers are ignored'] : []),
    ...(action.case === 'route'
      ? unsupportedFieldsOf(action.value)
      : [`calls fail: gRPC has no ${actionText[action.case ?? ''] ?? action.case}`]),
  ];
  return { message: withOrigins(routeMessage, allOrigins), limitations: limits(texts) };
}

const filterText: Readonly<Record<string, string>> = { 'envoy.filters.http.cors': 'corsPolicy' };
const actionText: Readonly<Record<string, string>> = { redirect: 'redirect', directResponse: 'directResponse' };

/**
 * Replaces actions that gRPC does not support. Otherwise clients would reject the route configuration, and `non_forwarding_action` crashes Node
 * clients.
 */
const abortFilter = pack(HTTPFaultSchema, {
  abort: {
    errorType: { case: 'grpcStatus', value: grpcStatusNames.indexOf('UNAVAILABLE') },
    percentage: { numerator: 100, denominator: FractionalPercent_DenominatorType.HUNDRED },
  },
});

function routeToCluster(cluster: string): RouteAction {
  return create(RouteActionSchema, { clusterSpecifier: { case: 'cluster', value: cluster } });
}

function grpcAction(action: RouteAction): RouteAction {
  const { clusterSpecifier, timeout, retryPolicy, hashPolicy } = action;
  const retries = retryPolicy && grpcRetries(retryPolicy);
  const hasTimeout = timeout !== undefined && (timeout.seconds > 0n || timeout.nanos > 0);
  return create(RouteActionSchema, {
    clusterSpecifier: grpcClusters(clusterSpecifier),
    // Replaces `timeout`, which gRPC ignores.
    ...(hasTimeout && { maxStreamDuration: { maxStreamDuration: timeout } }),
    ...(retries && { retryPolicy: retries }),
    hashPolicy: hashPolicy.filter(({ policySpecifier }) => policySpecifier.case === 'header'),
  });
}

function grpcClusters(
  clusters: RouteAction['clusterSpecifier'],
): NonNullable<Init<typeof RouteActionSchema>['clusterSpecifier']> {
  if (clusters.case !== 'weightedClusters') return clusters as never;
  return {
    case: 'weightedClusters',
    value: {
      clusters: clusters.value.clusters.map(({ name, weight }) => ({ name, ...(weight !== undefined && { weight }) })),
    },
  };
}

function grpcRetries({ retryOn, numRetries, retryBackOff }: RetryPolicy): RetryPolicy | undefined {
  const conditions = retryOn.split(',').filter((condition) => retriableConditions.has(condition));
  // gRPC rejects retry policies without retries.
  if (conditions.length === 0 || numRetries === 0) return undefined;
  return create(RetryPolicySchema, {
    retryOn: conditions.join(','),
    ...(numRetries !== undefined && { numRetries }),
    ...(retryBackOff && { retryBackOff }),
  });
}

function unsupportedFieldsOf(action: RouteAction): readonly string[] {
  const {
    requestMirrorPolicies,
    prefixRewrite,
    regexRewrite,
    hostRewriteSpecifier,
    retryPolicy,
    hashPolicy,
    clusterSpecifier,
  } = action;
  const weightedClusters = clusterSpecifier.case === 'weightedClusters' ? clusterSpecifier.value.clusters : [];
  return [
    ...(requestMirrorPolicies.length > 0 ? ['mirroring is ignored'] : []),
    ...(prefixRewrite !== '' || regexRewrite !== undefined ? ['rewrite of the path is ignored'] : []),
    ...(hostRewriteSpecifier.case !== undefined ? ['rewrite of the authority is ignored'] : []),
    ...(weightedClusters.some(hasHeaderChanges) ? ['changes of headers by destination are ignored'] : []),
    ...(retryPolicy?.perTryTimeout ? ['retries.perTryTimeout is ignored'] : []),
    ...(retryPolicy?.retryPriority ? ['retries.retryRemoteLocalities is ignored'] : []),
    ...(hashPolicy.some(({ policySpecifier }) => policySpecifier.case !== 'header')
      ? ['requests are hashed by headers only']
      : []),
  ];
}

type HeaderChangeFields = Pick<
  Route,
  'requestHeadersToAdd' | 'requestHeadersToRemove' | 'responseHeadersToAdd' | 'responseHeadersToRemove'
>;

function hasHeaderChanges(headerFields: HeaderChangeFields): boolean {
  const { requestHeadersToAdd, requestHeadersToRemove, responseHeadersToAdd, responseHeadersToRemove } = headerFields;
  // Proxyless gRPC does not send this header.
  const removedHeaders = requestHeadersToRemove.filter((header) => header !== peerHeader);
  return [requestHeadersToAdd, removedHeaders, responseHeadersToAdd, responseHeadersToRemove].some(
    ({ length }) => length > 0,
  );
}
