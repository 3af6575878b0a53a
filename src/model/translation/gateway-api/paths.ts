import type { HttpRouteMatch, PathModifier } from '../../kinds/gateway-api/http-route.ts';
import type { HttpMatchRequest, HttpRedirect, HttpRewrite } from '../../kinds/virtual-service/virtual-service.ts';
import { pathOf } from './precedence.ts';

type PathCondition = Pick<HttpMatchRequest, 'uri' | 'bySegments'>;

/**
 * Prefixes match complete segments: `/a` matches `/a` and everything below `/a/`. Removing a prefix needs two matches: Envoy replaces text, so
 * replacing `/a` by `/` would turn `/a/b` into `//b`.
 */
export function pathMatches(match: HttpRouteMatch, modifier: PathModifier | undefined): readonly PathCondition[] {
  const path = pathOf(match);
  switch (match.path.type) {
    case 'Exact':
      return [{ uri: { exact: path } }];
    case 'RegularExpression':
      return [{ uri: { regex: path } }];
    case 'PathPrefix':
      if (path === '') return [{}];
      if (modifier?.type !== 'ReplacePrefixMatch' || replacementOf(modifier.replacePrefixMatch) !== '') {
        return [{ uri: { prefix: path }, bySegments: true }];
      }
      return [{ uri: { exact: path } }, { uri: { prefix: `${path}/` } }];
  }
}

/** Matches any path, without its query. */
const anyPathPattern = '/.*';

export function pathRewrite(
  modifier: PathModifier,
  match: HttpRouteMatch,
): Pick<HttpRewrite, 'uri' | 'uriRegexRewrite'> {
  if (modifier.type === 'ReplacePrefixMatch') return prefixRewrite(modifier.replacePrefixMatch, match);
  return {
    uriRegexRewrite: { match: anyPathPattern, rewrite: escapedLiteral(withLeadingSlash(modifier.replaceFullPath)) },
  };
}

export function pathRedirect(modifier: PathModifier, match: HttpRouteMatch): Pick<HttpRedirect, 'uri'> {
  if (modifier.type === 'ReplaceFullPath') return { uri: withLeadingSlash(modifier.replaceFullPath) };
  const { uri } = prefixRewrite(modifier.replacePrefixMatch, match);
  return uri === undefined ? {} : { uri: `%PREFIX()%${uri}` };
}

function prefixRewrite(rewritePath: string, match: HttpRouteMatch): { uri?: string } {
  const [prefix, replacement] = [pathOf(match), replacementOf(rewritePath)];
  if (prefix === replacement) return {};
  // If a match covers every path, its prefix includes the leading slash.
  return { uri: prefix === '' || replacement === '' ? `${replacement}/` : replacement };
}

function replacementOf(rewritePath: string): string {
  return withLeadingSlash(rewritePath).replace(/\/+$/, '');
}

function withLeadingSlash(path: string): string {
  return path.startsWith('/') ? path : `/${path}`;
}

/** Escapes backslashes, which would refer to groups in a substitution. */
function escapedLiteral(path: string): string {
  return path.replaceAll('\\', '\\\\');
}
