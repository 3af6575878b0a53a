import { create } from '@bufbuild/protobuf';
import {
  type HeaderMatcher,
  type RouteMatch,
  RouteMatchSchema,
} from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { StringMatcher } from '../../gen/envoy/type/matcher/v3/string_pb.ts';

const specialCharacters = /[\\^$.|?*+()[\]{}]/g;

const callMethod = 'POST';

/** @returns a reason if no gRPC call can match, or if gRPC does not support a condition and would match too many calls without it */
export function grpcMatch(match: RouteMatch): RouteMatch | string {
  if (match.queryParameters.length > 0) return 'gRPC calls have no query parameters';
  if (match.dynamicMetadata.length > 0) return 'gRPC does not validate tokens, so no claim matches';
  const headers: HeaderMatcher[] = [];
  for (const header of match.headers) {
    if (header.name === ':method') {
      const matches = matchesMethod(header);
      if (matches === undefined) return 'gRPC cannot check a regular expression for the method';
      if (!matches) return `the method of gRPC calls is ${callMethod}`;
    } else if (header.name.startsWith(':')) return `gRPC cannot check ${header.name.slice(1)}`;
    else headers.push(header);
  }
  const { pathSpecifier, caseSensitive } = match;
  return create(RouteMatchSchema, {
    pathSpecifier: grpcPath(pathSpecifier),
    ...(caseSensitive !== undefined && { caseSensitive }),
    headers,
  });
}

function grpcPath(path: RouteMatch['pathSpecifier']): RouteMatch['pathSpecifier'] {
  if (path.case !== 'pathSeparatedPrefix') return path;
  return { case: 'safeRegex', value: { regex: `${path.value.replaceAll(specialCharacters, '\\$&')}(/.*)?` } as never };
}

function matchesMethod({
  headerMatchSpecifier: { case: kind, value },
  invertMatch,
}: HeaderMatcher): boolean | undefined {
  const matches = kind === 'stringMatch' ? matchesText(value, callMethod) : kind === 'presentMatch' ? value : undefined;
  return matches === undefined ? undefined : matches !== invertMatch;
}

function matchesText({ matchPattern: { case: kind, value } }: StringMatcher, text: string): boolean | undefined {
  switch (kind) {
    case 'exact':
      return text === value;
    case 'prefix':
      return text.startsWith(value);
    case 'suffix':
      return text.endsWith(value);
    case 'contains':
      return text.includes(value);
    default:
      return undefined;
  }
}
