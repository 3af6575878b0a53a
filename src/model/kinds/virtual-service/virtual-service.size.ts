/** Each match becomes an Envoy route in the virtual host of each host. */
import { type FieldError, fieldPath } from '../../fields/decode.ts';
import { limitErrors } from '../../fields/limits.ts';
import { maxHostRoutes, maxRouteDestinations, maxRouteMatches, unitBytes } from '../object-limits.ts';
import type { VirtualService } from './virtual-service.ts';

interface Route {
  readonly match?: readonly object[] | undefined;
  readonly route?: readonly object[] | undefined;
  readonly mirrors?: readonly object[] | undefined;
}

const fields = ['http', 'tls', 'tcp'] as const;

export function sizeErrors(spec: VirtualService, path: string): FieldError[] {
  const { hosts } = spec;
  return fields.flatMap((field) => {
    const routes: readonly Route[] = spec[field] ?? [];
    const routesPath = fieldPath(path, field);
    const matches = sumOf(routes, ({ match }) => Math.max(match?.length ?? 0, 1));
    const destinations = sumOf(routes, ({ route, mirrors }) => (route?.length ?? 0) + (mirrors?.length ?? 0));
    const hostsLimitText = `routes of all hosts (hosts x matches, each counted once for each ${unitBytes} bytes)`;
    return [
      ...limitErrors(routesPath, matches, maxRouteMatches, 'matches of all routes'),
      ...limitErrors(routesPath, hosts.length * sumOf(routes, routeUnits), maxHostRoutes, hostsLimitText),
      ...limitErrors(routesPath, destinations, maxRouteDestinations, 'destinations of all routes'),
    ];
  });
}

/** Size of all routes for all hosts, in {@link unitBytes}; every proxy that sees the object receives these routes. */
export function virtualServiceUnits(spec: VirtualService): number {
  return Math.max(spec.hosts.length, 1) * sumOf(fields, (field) => sumOf(spec[field] ?? [], routeUnits));
}

/** Size of one route for one host. Each match becomes an Envoy route that contains everything except the other matches. */
export function routeUnits({ match = [], ...action }: Route): number {
  const bytes = bytesOf(action);
  return match.length === 0 ? unitsOf(bytes) : sumOf(match, (routeMatch) => unitsOf(bytes + bytesOf(routeMatch)));
}

export function unitsOf(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / unitBytes));
}

export function bytesOf(value: unknown): number {
  return value === undefined ? 0 : JSON.stringify(value).length;
}

function sumOf<Item>(items: readonly Item[], count: (item: Item) => number): number {
  return items.reduce((total, item) => total + count(item), 0);
}
