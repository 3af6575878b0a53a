import type { CorsPolicy } from '../../../gen/envoy/extensions/filters/http/cors/v3/cors_pb.ts';
import type { RoutedRequest } from '../route-match.ts';
import { matchesString } from '../string-matches.ts';
import { fractionOf } from './fault.ts';
import type { FilterResult } from './filter-result.ts';

export function isPreflight({ method, headers }: RoutedRequest): boolean {
  return method === 'OPTIONS' && Boolean(headers.origin) && Boolean(headers['access-control-request-method']);
}

export function evaluateCors(policy: CorsPolicy, request: RoutedRequest): FilterResult {
  const { allowOriginStringMatch, filterEnabled, forwardNotMatchingPreflights } = policy;
  if (!isPreflight(request) || (filterEnabled && fractionOf(filterEnabled.defaultValue) < 1)) return undefined;
  const isOriginAllowed = allowOriginStringMatch.some((matcher) => matchesString(matcher, request.headers.origin!));
  if (!isOriginAllowed && forwardNotMatchingPreflights !== false) return undefined;
  return {
    outcome: {
      kind: 'preflight',
      status: 200,
      why: 'the proxy responds to the preflight request, by the corsPolicy of the route',
    },
  };
}
