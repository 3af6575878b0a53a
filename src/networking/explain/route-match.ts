/** Finds the virtual host and route of a request (Envoy's docs: config.route.v3.VirtualHost, RouteMatch). */

import type { Route, RouteMatch, VirtualHost } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { RouteConfiguration } from '../../gen/envoy/config/route/v3/route_pb.ts';
import type { MetadataMatcher } from '../../gen/envoy/type/matcher/v3/metadata_pb.ts';
import type { ValueMatcher } from '../../gen/envoy/type/matcher/v3/value_pb.ts';
import { ownValue } from '../../runtime/json-object.ts';
import type { HttpQuestion } from './question.ts';
import { matchesHeader, matchesParameter, matchesRegex, matchesString } from './string-matches.ts';

/** Prefers exact names, then the longest `*.suffix`, then the longest `prefix.*`, then `*`. */
export function virtualHostOf(routes: RouteConfiguration, authority: string): VirtualHost | undefined {
  const hostname = routes.ignorePortInHostMatching ? authority.replace(/:\d+$/, '') : authority;
  const host = hostname.toLowerCase();
  let bestMatch: { readonly host: VirtualHost; readonly rank: number } | undefined;
  for (const candidateHost of routes.virtualHosts) {
    for (const domain of candidateHost.domains) {
      const rank = rankOf(domain.toLowerCase(), host);
      if (rank !== undefined && (bestMatch === undefined || rank > bestMatch.rank))
        bestMatch = { host: candidateHost, rank };
    }
  }
  return bestMatch?.host;
}

const exactRank = 3_000_000;
const suffixRank = 2_000_000;
const prefixRank = 1_000_000;

function rankOf(domain: string, host: string): number | undefined {
  if (domain === host) return exactRank;
  if (domain === '*') return 0;
  const isLongEnough = host.length >= domain.length;
  if (domain.startsWith('*'))
    return isLongEnough && host.endsWith(domain.slice(1)) ? suffixRank + domain.length : undefined;
  if (domain.endsWith('*'))
    return isLongEnough && host.startsWith(domain.slice(0, -1)) ? prefixRank + domain.length : undefined;
  return undefined;
}

export interface RoutedRequest extends HttpQuestion {
  readonly authority: string;
  readonly scheme: 'http' | 'https';
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export function routeOf({ routes }: VirtualHost, request: RoutedRequest): Route | undefined {
  return routes.find(({ match }) => match !== undefined && matchesRoute(match, request));
}

export function matchesRoute(match: RouteMatch, request: RoutedRequest): boolean {
  const [path = '', query = ''] = splitAtSeparator(request.path.split('#')[0]!, '?');
  const parameters = new URLSearchParams(query);
  return (
    matchesPath(match, path, request.method) &&
    match.headers.every((matcher) => matchesHeader(matcher, headerOf(request, matcher.name.toLowerCase()))) &&
    match.queryParameters.every((matcher) => matchesParameter(matcher, parameters.get(matcher.name) ?? undefined)) &&
    match.dynamicMetadata.every((matcher) => matchesMetadata(matcher, request.metadata ?? {})) &&
    (match.grpc === undefined || (request.headers['content-type'] ?? '').startsWith('application/grpc')) &&
    (match.runtimeFraction?.defaultValue === undefined || match.runtimeFraction.defaultValue.numerator > 0)
  );
}

/** @param name in lower case */
export function headerOf(request: RoutedRequest, name: string): string | undefined {
  switch (name) {
    case ':method':
      return request.method;
    case ':authority':
    case 'host':
      return request.authority;
    case ':scheme':
      return request.scheme;
    case ':path':
      return request.path;
    default:
      return ownValue(request.headers, name);
  }
}

function matchesPath(match: RouteMatch, path: string, method: string): boolean {
  const { pathSpecifier: specifier } = match;
  const ignoresCase = match.caseSensitive === false;
  const value = ignoresCase ? path.toLowerCase() : path;
  const foldCase = (text: string): string => (ignoresCase ? text.toLowerCase() : text);
  switch (specifier.case) {
    case 'prefix':
      return value.startsWith(foldCase(specifier.value));
    case 'path':
      return value === foldCase(specifier.value);
    case 'pathSeparatedPrefix':
      return value === foldCase(specifier.value) || value.startsWith(`${foldCase(specifier.value)}/`);
    case 'safeRegex':
      return matchesRegex(specifier.value.regex, path);
    case 'connectMatcher':
      return method === 'CONNECT';
    default:
      return false;
  }
}

export function matchesMetadata(
  { filter, path, value, invert }: MetadataMatcher,
  metadata: Readonly<Record<string, unknown>>,
): boolean {
  let metadataValue: unknown = ownValue(metadata, filter);
  for (const { segment } of path) {
    metadataValue =
      typeof metadataValue === 'object' && metadataValue !== null
        ? (metadataValue as Record<string, unknown>)[segment.value ?? '']
        : undefined;
  }
  return (value !== undefined && matchesValue(value, metadataValue)) !== invert;
}

function matchesValue({ matchPattern }: ValueMatcher, value: unknown): boolean {
  switch (matchPattern.case) {
    case 'stringMatch':
      return typeof value === 'string' && matchesString(matchPattern.value, value);
    case 'boolMatch':
      return value === matchPattern.value;
    case 'presentMatch':
      return (value !== undefined) === matchPattern.value;
    case 'nullMatch':
      return value === null;
    case 'listMatch': {
      const { matchPattern: item } = matchPattern.value;
      return (
        Array.isArray(value) && item.case === 'oneOf' && value.some((listItem) => matchesValue(item.value, listItem))
      );
    }
    case 'orMatch':
      return matchPattern.value.valueMatchers.some((valueMatcher) => matchesValue(valueMatcher, value));
    default:
      return false;
  }
}

function splitAtSeparator(text: string, separator: string): readonly [string, string] {
  const separatorIndex = text.indexOf(separator);
  return separatorIndex === -1 ? [text, ''] : [text.slice(0, separatorIndex), text.slice(separatorIndex + 1)];
}
