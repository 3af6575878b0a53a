/**
 * Omits the port number in redirects to a scheme's default port (HTTPRequestRedirectFilter of the Gateway API, `port`). Sets the host explicitly,
 * because Envoy would keep the port of the request's authority.
 */
import { isWildcard } from '../../fields/hostname.ts';
import type { StringMatch } from '../../kinds/virtual-service/string-match.ts';
import type { PlacedRoute } from './http-route-rules.ts';

export function dependsOnHost({ http: { redirect } }: PlacedRoute): boolean {
  return redirect?.includesPort === true;
}

const withPort: StringMatch = { regex: '.*:[0-9]+' };

/** For a wildcard the actual name is unknown, so the redirect contains the port if the authority does. */
export function routesForHost(placedRoute: PlacedRoute, host: string): readonly PlacedRoute[] {
  const { redirect, match = [{}], ...http } = placedRoute.http;
  if (redirect === undefined || !dependsOnHost(placedRoute)) return [placedRoute];
  const { port: _, includesPort: _kept, ...redirectWithoutPort } = redirect;
  if (!isWildcard(host))
    return [{ ...placedRoute, http: { ...http, match, redirect: { ...redirectWithoutPort, authority: host } } }];
  const matchesWithPort = match.map((routeMatch) => ({ ...routeMatch, authority: withPort }));
  return [
    { ...placedRoute, http: { ...http, match: matchesWithPort, redirect } },
    { ...placedRoute, http: { ...http, match, redirect: redirectWithoutPort } },
  ];
}
