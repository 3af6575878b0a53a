import { create } from '@bufbuild/protobuf';
import {
  type RouteAction_HashPolicy,
  RouteAction_HashPolicySchema,
} from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { ConsistentHashLoadBalancer } from '../../../model/kinds/destinations/traffic-policy.ts';
import type { Init } from '../../messages/init.ts';
import { optionalDuration } from '../../messages/protobuf-duration.ts';

export function hashPolicy(hash: ConsistentHashLoadBalancer): RouteAction_HashPolicy | undefined {
  const policySpecifier = specifierOf(hash);
  return policySpecifier && create(RouteAction_HashPolicySchema, { policySpecifier });
}

function specifierOf(
  hash: ConsistentHashLoadBalancer,
): Init<typeof RouteAction_HashPolicySchema>['policySpecifier'] | undefined {
  if (hash.httpHeaderName) return { case: 'header', value: { headerName: hash.httpHeaderName } };
  if (hash.httpCookie) {
    const { name, path, ttlMs, attributes } = hash.httpCookie;
    return {
      case: 'cookie',
      value: {
        name,
        path: path ?? '',
        ttl: optionalDuration(ttlMs),
        attributes: (attributes ?? []).map((attribute) => ({ ...attribute })),
      },
    };
  }
  if (hash.useSourceIp) return { case: 'connectionProperties', value: { sourceIp: true } };
  if (hash.httpQueryParameterName) return { case: 'queryParameter', value: { name: hash.httpQueryParameterName } };
  return undefined;
}
