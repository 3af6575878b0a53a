/** What a VirtualService expands to: each match becomes a route of Envoy, in a virtual host of each host. */
import { type FieldError, fieldPath } from '../fields/decode.ts';
import { limitErrors } from '../fields/limits.ts';
import { maxHostRoutes, maxRouteDestinations, maxRouteMatches } from './object-limits.ts';
import type { VirtualService } from './virtual-service.ts';

interface Route {
  readonly match?: readonly object[];
  readonly route?: readonly object[];
  readonly mirrors?: readonly object[];
}

export function sizeErrors(spec: VirtualService, path: string): FieldError[] {
  const { hosts } = spec;
  return (['http', 'tls', 'tcp'] as const).flatMap((field) => {
    const routes: readonly Route[] = spec[field] ?? [];
    const at = fieldPath(path, field);
    const matches = sum(routes, ({ match }) => Math.max(match?.length ?? 0, 1));
    const destinations = sum(routes, ({ route, mirrors }) => (route?.length ?? 0) + (mirrors?.length ?? 0));
    return [
      ...limitErrors(at, matches, maxRouteMatches, 'matches of all routes'),
      ...limitErrors(at, hosts.length * matches, maxHostRoutes, 'routes of all hosts (hosts x matches)'),
      ...limitErrors(at, destinations, maxRouteDestinations, 'destinations of all routes'),
    ];
  });
}

function sum<Item>(items: readonly Item[], count: (item: Item) => number): number {
  return items.reduce((total, item) => total + count(item), 0);
}
