import { create, equals } from '@bufbuild/protobuf';
import {
  type RouteAction,
  RouteAction_ClusterNotFoundResponseCode,
  type RouteAction_HashPolicy,
  RouteAction_HashPolicySchema,
  type RouteAction_RequestMirrorPolicy,
  RouteAction_RequestMirrorPolicySchema,
  RouteActionSchema,
} from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import type {
  Destination,
  HttpRetry,
  HttpRoute,
  HttpRouteDestination,
} from '../../../model/kinds/virtual-service/virtual-service.ts';
import { serviceKey } from '../../../model/services/service.ts';
import type { Init } from '../../messages/init.ts';
import { runtimePercent } from '../../messages/percent.ts';
import { duration } from '../../messages/protobuf-duration.ts';
import { resolveDestination } from '../../traffic/destination.ts';
import type { ProxyReach } from '../../traffic/reach.ts';
import { effectivePolicy } from '../../traffic/traffic-policy.ts';
import { hashPolicy } from './hash-policy.ts';
import { headerFields, hostFromHeaders } from './headers.ts';
import { retryPolicy } from './retry.ts';
import { combineDependencies, type WithDependencies } from './with-dependencies.ts';

export interface ActionContext {
  readonly reach: ProxyReach;
  readonly listenerPort: number;
  readonly meshRetry: HttpRetry | undefined;
}

export function forwardAction(
  route: HttpRoute,
  destinations: readonly HttpRouteDestination[],
  context: ActionContext,
): WithDependencies<RouteAction> {
  const { value: hashes, dependsOn } = hashPolicies(destinations, context);
  const host = route.rewrite?.authority ?? hostFromHeaders(route.headers) ?? singleHost(destinations);
  const value = create(RouteActionSchema, {
    clusterSpecifier: clusterSpecifier(destinations, context),
    timeout: duration(route.timeoutMs ?? 0),
    maxGrpcTimeout: duration(route.timeoutMs ?? 0),
    retryPolicy: retryPolicy(route.retries, context.meshRetry, hashes.length > 0),
    hashPolicy: hashes,
    requestMirrorPolicies: mirrorPolicies(route, context),
    ...rewriteFields(route),
    ...(host && { hostRewriteSpecifier: { case: 'hostRewriteLiteral', value: host } }),
    ...(route.missingDestinationStatus === 500 && {
      clusterNotFoundResponseCode: RouteAction_ClusterNotFoundResponseCode.INTERNAL_SERVER_ERROR,
    }),
  });
  return { value, dependsOn };
}

export function usedDestinations(route: HttpRoute): readonly HttpRouteDestination[] {
  const routeDestinations = route.route ?? [];
  if (routeDestinations.length <= 1) return routeDestinations;
  const weightedDestinations = routeDestinations.filter(({ weight }) => weight !== undefined && weight > 0);
  return weightedDestinations.length > 0 ? weightedDestinations : routeDestinations.slice(0, 1);
}

function clusterSpecifier(
  destinations: readonly HttpRouteDestination[],
  context: ActionContext,
): NonNullable<Init<typeof RouteActionSchema>['clusterSpecifier']> {
  if (destinations.length === 1) return { case: 'cluster', value: clusterOf(destinations[0]!.destination, context) };
  return {
    case: 'weightedClusters',
    value: {
      clusters: destinations.map(({ destination, weight, headers }) => {
        const host = hostFromHeaders(headers);
        return {
          name: clusterOf(destination, context),
          weight,
          ...headerFields(headers),
          ...(host && { hostRewriteSpecifier: { case: 'hostRewriteLiteral', value: host } }),
        };
      }),
    },
  };
}

/** Returns the rewritten host of the route if there is a single destination. With several, each weighted cluster has its own. */
function singleHost(destinations: readonly HttpRouteDestination[]): string | undefined {
  return destinations.length === 1 ? hostFromHeaders(destinations[0]!.headers) : undefined;
}

function clusterOf(destination: Destination, { reach, listenerPort }: ActionContext): string {
  return resolveDestination(destination, listenerPort, reach).cluster;
}

function hashPolicies(
  destinations: readonly HttpRouteDestination[],
  context: ActionContext,
): WithDependencies<RouteAction_HashPolicy[]> {
  const { value, dependsOn } = combineDependencies(destinations.map(({ destination }) => hashOf(destination, context)));
  const policies = value.filter((policy) => policy !== undefined);
  const distinctPolicies = policies.filter(
    (policy, policyIndex) =>
      !policies
        .slice(0, policyIndex)
        .some((previousPolicy) => equals(RouteAction_HashPolicySchema, previousPolicy, policy)),
  );
  return { value: distinctPolicies, dependsOn };
}

export function hashOf(
  destination: Destination,
  context: ActionContext,
): WithDependencies<RouteAction_HashPolicy | undefined> {
  const { service, serviceWithRule, port } = resolveDestination(destination, context.listenerPort, context.reach);
  if (service === undefined || serviceWithRule === undefined) return { value: undefined, dependsOn: [] };
  const rule = context.reach.destinationRuleFor(serviceWithRule);
  const hash = effectivePolicy(rule?.config.spec, destination.subset ?? '', port).loadBalancer?.consistentHash;
  return { value: hash && hashPolicy(hash), dependsOn: [serviceKey(service), ...(rule?.origins ?? [])] };
}

function mirrorPolicies(route: HttpRoute, context: ActionContext): RouteAction_RequestMirrorPolicy[] {
  const singleMirror = route.mirror ? [{ destination: route.mirror, percentage: route.mirrorPercentage }] : [];
  return [...singleMirror, ...(route.mirrors ?? [])]
    .filter(({ percentage }) => percentage?.value !== 0)
    .map(({ destination, percentage }) =>
      create(RouteAction_RequestMirrorPolicySchema, {
        cluster: clusterOf(destination, context),
        runtimeFraction: runtimePercent(percentage),
        traceSampled: false,
      }),
    );
}

function rewriteFields({ rewrite: settings }: HttpRoute): Init<typeof RouteActionSchema> {
  if (settings?.uriRegexRewrite) {
    const { match, rewrite: substitution } = settings.uriRegexRewrite;
    return { regexRewrite: { pattern: { regex: match }, substitution } };
  }
  return settings?.uri ? { prefixRewrite: settings.uri } : {};
}
