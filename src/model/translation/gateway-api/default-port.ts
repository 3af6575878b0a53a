/**
 * Redirects to the port that a scheme has anyway: the client is told of no number (the Gateway API's HTTPRequestRedirectFilter,
 * `port`). Envoy keeps the port of the name in the request, so that the name must be said without it.
 */
import { isWildcard } from '../../fields/hostname.ts';
import type { StringMatch } from '../../kinds/virtual-service/string-match.ts';
import type { PlacedRoute } from './http-route-rules.ts';

/** Whether what is made of a route depends on the host that it is for. */
export function dependsOnHost({ http: { redirect } }: PlacedRoute): boolean {
  return redirect?.saysPort === true;
}

/** A name that a client gives with a port. */
const withPort: StringMatch = { regex: '.*:[0-9]+' };

/** A route as it is for a host. Of a wildcard only the client knows the name: where it has a port, another one is said. */
export function atHost(placed: PlacedRoute, host: string): readonly PlacedRoute[] {
  const { redirect, match = [{}], ...http } = placed.http;
  if (redirect === undefined || !dependsOnHost(placed)) return [placed];
  const { port: _, saysPort: _kept, ...unsaid } = redirect;
  if (!isWildcard(host)) return [{ ...placed, http: { ...http, match, redirect: { ...unsaid, authority: host } } }];
  const named = match.map((one) => ({ ...one, authority: withPort }));
  return [
    { ...placed, http: { ...http, match: named, redirect } },
    { ...placed, http: { ...http, match, redirect: unsaid } },
  ];
}
