import { create } from '@bufbuild/protobuf';
import {
  type HeaderMatcher,
  HeaderMatcherSchema,
  type QueryParameterMatcher,
  QueryParameterMatcherSchema,
  type RouteMatch,
  RouteMatchSchema,
} from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import { compareText } from '../../../model/config/config.ts';
import { isClaimKey } from '../../../model/fields/claim-key.ts';
import type { StringMatch, ValueMatch } from '../../../model/kinds/virtual-service/string-match.ts';
import type { HttpMatchRequest } from '../../../model/kinds/virtual-service/virtual-service.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import { matchesSelector } from '../../../model/services/label-match.ts';
import type { Init } from '../../messages/init.ts';
import { claimMatchers } from './claims.ts';
import { stringMatcher } from './string-matcher.ts';

/** Properties of proxy and port, which the control plane matches instead of Envoy. */
export interface MatchContext {
  readonly shape: ProxyShape;
  /** `mesh`, or the gateway's name. */
  readonly gateway: string;
  readonly listenerPort: number;
}

export function appliesTo(match: HttpMatchRequest, { shape, gateway, listenerPort }: MatchContext): boolean {
  return (
    !match.never &&
    (match.port === undefined || match.port === listenerPort) &&
    matchesSelector(match.sourceLabels ?? {}, shape.labels) &&
    (match.sourceNamespace === undefined || match.sourceNamespace === shape.configNamespace) &&
    (!match.gateways?.length || match.gateways.includes(gateway))
  );
}

export function routeMatch(match: HttpMatchRequest): RouteMatch {
  return create(RouteMatchSchema, {
    pathSpecifier: pathSpecifier(match),
    ...(match.ignoreUriCase && { caseSensitive: false }),
    headers: [
      ...headersOf(match.headers).map(([name, value]) => headerMatcher(name, value)),
      ...headersOf(match.withoutHeaders).map(([name, value]) => absentHeaderMatcher(name, value)),
      ...pseudoHeader(':method', match.method),
      ...pseudoHeader(':authority', match.authority),
      ...pseudoHeader(':scheme', match.scheme),
    ],
    queryParameters: sortedEntries(match.queryParams).map(([name, value]) => queryParameter(name, value)),
    dynamicMetadata: claimMatchers(match),
  });
}

/** Whether all requests match, so that later routes are unreachable. */
export function isCatchAll(match: RouteMatch): boolean {
  const { $typeName: _, $unknown: _1, pathSpecifier, caseSensitive: _2, ...conditions } = match;
  const matchesAnyPath =
    (pathSpecifier.case === 'prefix' && pathSpecifier.value === '/') ||
    (pathSpecifier.case === 'safeRegex' && (pathSpecifier.value.regex === '.*' || pathSpecifier.value.regex === '/.*'));
  return matchesAnyPath && Object.values<unknown>(conditions).every(isEmptyCondition);
}

/**
 * Whether a field is unset. Checks every field, including ones that are not generated yet, because ignoring a
 * condition would drop later routes.
 */
function isEmptyCondition(value: unknown): boolean {
  return value === undefined || (Array.isArray(value) && value.length === 0);
}

function pathSpecifier({
  uri,
  bySegments,
}: HttpMatchRequest): NonNullable<Init<typeof RouteMatchSchema>['pathSpecifier']> {
  if (uri === undefined) return { case: 'prefix', value: '/' };
  if ('exact' in uri) return { case: 'path', value: uri.exact };
  if ('prefix' in uri) return { case: bySegments ? 'pathSeparatedPrefix' : 'prefix', value: uri.prefix };
  return { case: 'safeRegex', value: { regex: uri.regex } };
}

function headerMatcher(name: string, value: ValueMatch): HeaderMatcher {
  return create(HeaderMatcherSchema, {
    name,
    headerMatchSpecifier:
      'present' in value ? { case: 'presentMatch', value: true } : { case: 'stringMatch', value: stringMatcher(value) },
  });
}

/** Returns a matcher that accepts a request without the header, because it does not contain the excluded value. */
function absentHeaderMatcher(name: string, value: ValueMatch): HeaderMatcher {
  const matcher = headerMatcher(name, value);
  matcher.invertMatch = true;
  matcher.treatMissingHeaderAsEmpty = !('present' in value);
  return matcher;
}

function pseudoHeader(name: string, value: StringMatch | undefined): HeaderMatcher[] {
  return value === undefined ? [] : [headerMatcher(name, value)];
}

function queryParameter(name: string, value: ValueMatch): QueryParameterMatcher {
  return create(QueryParameterMatcherSchema, {
    name,
    queryParameterMatchSpecifier:
      'present' in value ? { case: 'presentMatch', value: true } : { case: 'stringMatch', value: stringMatcher(value) },
  });
}

/** Excludes claims, which are in the same field as headers. */
function headersOf(values: Readonly<Record<string, ValueMatch>> | undefined): [string, ValueMatch][] {
  return sortedEntries(values).filter(([name]) => !isClaimKey(name));
}

function sortedEntries<T>(values: Readonly<Record<string, T>> | undefined): [string, T][] {
  return Object.entries(values ?? {}).sort(([a], [b]) => compareText(a, b));
}
