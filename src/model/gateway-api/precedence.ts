/** Which of several matches takes a request that fits all of them (the Gateway API's order, HTTPRouteRule.matches). */
import { compareText } from '../config.ts';
import type { HttpRouteMatch } from '../kinds/gateway-api/http-route.ts';

/** A match, and what its place depends on. */
export interface Placed {
  readonly match: HttpRouteMatch;
  /** Its route: when it was made, and `namespace/name`. */
  readonly age: number;
  readonly routeName: string;
  readonly rule: number;
  readonly index: number;
}

/**
 * What comes first takes the request: an exact path, then the longest prefix, then expressions, then what has any path;
 * after that whether it has a method, the most headers, the most query parameters, the oldest route, its name, and its
 * place in the route. Where expressions stand the API leaves open; here it is as in the reference.
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

function rankOf(match: HttpRouteMatch): number {
  if (match.path.type === 'Exact') return 3;
  if (match.path.type === 'RegularExpression') return 1;
  return pathOf(match) === '' ? 0 : 2;
}

/** Prefixes without slashes at their end, which mean nothing there. */
export function pathOf({ path }: HttpRouteMatch): string {
  return path.type === 'PathPrefix' ? path.value.replace(/\/+$/, '') : path.value;
}
