import { compareText } from '../../config/config.ts';
import type { HttpRouteMatch } from '../../kinds/gateway-api/http-route.ts';

export interface RankedMatch {
  readonly match: HttpRouteMatch;
  /** Creation time of the route. `routeName` is unique ({@link routeNameOf}). */
  readonly age: number;
  readonly routeName: string;
  readonly rule: number;
  readonly index: number;
}

/**
 * Precedence among matches of one request (HTTPRouteRule.matches of the Gateway API): exact path, longest prefix, regular expression; then a method,
 * most headers, most query parameters, oldest route, route name, position in the route. The API does not define the rank of regular expressions;
 * Istio also ranks them last.
 */
export function comparePrecedence(a: RankedMatch, b: RankedMatch): number {
  return (
    rankOf(b.match) - rankOf(a.match) ||
    pathOf(b.match).length - pathOf(a.match).length ||
    Number(b.match.method !== undefined) - Number(a.match.method !== undefined) ||
    b.match.headers.length - a.match.headers.length ||
    b.match.queryParams.length - a.match.queryParams.length ||
    a.age - b.age ||
    compareText(a.routeName, b.routeName) ||
    a.rule - b.rule ||
    a.index - b.index
  );
}

const ranks = { Exact: 2, PathPrefix: 1, RegularExpression: 0 } as const;

function rankOf({ path }: HttpRouteMatch): number {
  return ranks[path.type];
}

export function matchesEverything({ match }: Pick<RankedMatch, 'match'>): boolean {
  const { path, method, headers, queryParams } = match;
  const matchesAnyPath = path.type === 'PathPrefix' && pathOf(match) === '';
  return matchesAnyPath && method === undefined && headers.length === 0 && queryParams.length === 0;
}

/** Removes trailing slashes of prefixes, which are not significant. */
export function pathOf({ path }: HttpRouteMatch): string {
  return path.type === 'PathPrefix' ? path.value.replace(/\/+$/, '') : path.value;
}
