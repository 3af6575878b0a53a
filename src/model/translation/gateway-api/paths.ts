/** Paths of the Gateway API: how they are matched, and what they are replaced by. */
import type { HttpRouteMatch, PathModifier } from '../../kinds/gateway-api/http-route.ts';
import type { HttpMatchRequest, HttpRedirect, HttpRewrite } from '../../kinds/virtual-service/virtual-service.ts';
import { pathOf } from './precedence.ts';

type PathCondition = Pick<HttpMatchRequest, 'uri' | 'bySegments'>;

/**
 * Prefixes are those of whole segments: `/a` is `/a` and all below `/a/`. One that gives way to nothing is these two: Envoy
 * replaces it as a text, so that `/` for `/a` would make `//b` of `/a/b`.
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

/** Any path, without its query. */
const wholePath = '/.*';

/** What takes the place of a path that was matched by one of {@link pathMatches}. */
export function pathRewrite(
  modifier: PathModifier,
  match: HttpRouteMatch,
): Pick<HttpRewrite, 'uri' | 'uriRegexRewrite'> {
  if (modifier.type === 'ReplacePrefixMatch') return prefixRewrite(modifier.replacePrefixMatch, match);
  return { uriRegexRewrite: { match: wholePath, rewrite: literal(rooted(modifier.replaceFullPath)) } };
}

/** The same of a redirect. */
export function pathRedirect(modifier: PathModifier, match: HttpRouteMatch): Pick<HttpRedirect, 'uri'> {
  if (modifier.type === 'ReplaceFullPath') return { uri: rooted(modifier.replaceFullPath) };
  const { uri } = prefixRewrite(modifier.replacePrefixMatch, match);
  return uri === undefined ? {} : { uri: `%PREFIX()%${uri}` };
}

function prefixRewrite(written: string, match: HttpRouteMatch): { uri?: string } {
  const [prefix, replacement] = [pathOf(match), replacementOf(written)];
  if (prefix === replacement) return {};
  // What matches every path matched the slash that it begins with.
  return { uri: prefix === '' || replacement === '' ? `${replacement}/` : replacement };
}

/** Without slashes at its end, which mean nothing there. */
function replacementOf(written: string): string {
  return rooted(written).replace(/\/+$/, '');
}

function rooted(path: string): string {
  return path.startsWith('/') ? path : `/${path}`;
}

/** In a substitution a backslash refers to what was matched. */
function literal(path: string): string {
  return path.replaceAll('\\', '\\\\');
}
