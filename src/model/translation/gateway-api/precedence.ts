/** Which of several matches takes a request that fits all of them (the Gateway API's order, HTTPRouteRule.matches). */
import { compareText } from '../../config/config.ts';
import type { HttpRouteMatch } from '../../kinds/gateway-api/http-route.ts';

/** A match, and what its place depends on. */
export interface Placed {
  readonly match: HttpRouteMatch;
  /** Its route: when it was made, and its name among all, which {@link routeNameOf} tells. */
  readonly age: number;
  readonly routeName: string;
  readonly rule: number;
  readonly index: number;
}

/**
 * What comes first takes the request: an exact path, then the longest prefix, `/` being the shortest, then expressions; after
 * that whether it has a method, the most headers, the most query parameters, the oldest route, its name, and its place in the
 * route. Where expressions stand the API leaves open; here, as in the reference, what it does order stands before them.
 */
export function byPrecedence(a: Placed, b: Placed): number {
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

/** Whether every request fits, so that what comes behind it takes none. */
export function takesEverything({ match }: Pick<Placed, 'match'>): boolean {
  const { path, method, headers, queryParams } = match;
  const anyPath = path.type === 'PathPrefix' && pathOf(match) === '';
  return anyPath && method === undefined && headers.length === 0 && queryParams.length === 0;
}

/** Prefixes without slashes at their end, which mean nothing there. */
export function pathOf({ path }: HttpRouteMatch): string {
  return path.type === 'PathPrefix' ? path.value.replace(/\/+$/, '') : path.value;
}
