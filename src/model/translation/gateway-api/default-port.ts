/**
 * Omits the port number in redirects to a scheme's default port (HTTPRequestRedirectFilter of the Gateway API, `port`). Sets the host explicitly,
 * because Envoy would keep the port of the request's authority.
 */
import { isWildcard } from '../../fields/hostname.ts';
import type { StringMatch } from '../../kinds/virtual-service/string-match.ts';
import type { RankedRoute } from './http-route-rules.ts';

export function dependsOnHost({ http: { redirect } }: RankedRoute): boolean {
  return redirect?.includesPort === true;
}

const withPort: StringMatch = { regex: '.*:[0-9]+' };

/** A wildcard does not determine the name in the redirect. The redirect then contains the port if the request's authority does. */
export function routesForHost(rankedRoute: RankedRoute, host: string): readonly RankedRoute[] {
  const { redirect, match = [{}], ...http } = rankedRoute.http;
  if (redirect === undefined || !dependsOnHost(rankedRoute)) return [rankedRoute];
  const { port: _, includesPort: _kept, ...redirectWithoutPort } = redirect;
  if (!isWildcard(host))
    return [{ ...rankedRoute, http: { ...http, match, redirect: { ...redirectWithoutPort, authority: host } } }];
  const matchesWithPort = match.map((routeMatch) => ({ ...routeMatch, authority: withPort }));
  return [
    { ...rankedRoute, http: { ...http, match: matchesWithPort, redirect } },
    { ...rankedRoute, http: { ...http, match, redirect: redirectWithoutPort } },
  ];
}
