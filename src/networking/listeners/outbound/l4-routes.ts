import type { ConfigKey, Origin } from '../../../model/config/config.ts';
import { isHostWithin } from '../../../model/fields/hostname.ts';
import type {
  L4MatchAttributes,
  RouteDestination,
  TlsMatchAttributes,
} from '../../../model/kinds/virtual-service/virtual-service.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import { matchesSelector } from '../../../model/services/label-match.ts';
import { resolveDestination } from '../../traffic/destination.ts';
import type { ProxyReach } from '../../traffic/reach.ts';
import type { WeightedCluster } from '../network-filters/contributor.ts';

export interface L4Context {
  readonly shape: ProxyShape;
  readonly reach: ProxyReach;
  /** `mesh`, or names of gateways. */
  readonly gateways: ReadonlySet<string>;
  readonly port: number;
}

export interface L4Route {
  /** Empty for any name. */
  readonly serverNames: readonly string[];
  /** Empty for any destination. */
  readonly destinationSubnets: readonly string[];
  readonly sourceSubnet: string | undefined;
  readonly destinations: readonly WeightedCluster[];
  /** The first destination, whose traffic policy applies. */
  readonly firstDestination: RouteDestination['destination'];
  readonly dependsOn: readonly ConfigKey[];
  readonly origin: Origin;
}

/** @param hosts possible SNIs: hosts of the service or of the gateway's server */
export function tlsRoutes(
  virtualServices: readonly ResolvedVirtualService[],
  hosts: readonly string[],
  context: L4Context,
): readonly L4Route[] {
  return virtualServices.flatMap((virtualService) =>
    (virtualService.config.spec.tls ?? []).flatMap((route, index) =>
      route.match
        .filter((match) => matches(match, context))
        .flatMap((match) => {
          const serverNames = narrowedNames(match, hosts);
          if (serverNames.length === 0) return [];
          return toRoute(match, serverNames, route.route ?? [], { virtualService, field: 'tls', index }, context);
        }),
    ),
  );
}

export function tcpRoutes(virtualServices: readonly ResolvedVirtualService[], context: L4Context): readonly L4Route[] {
  return virtualServices.flatMap((virtualService) =>
    (virtualService.config.spec.tcp ?? []).flatMap((route, index) => {
      const matchAll: readonly L4MatchAttributes[] = [{}];
      const matchList = route.match?.length ? route.match : matchAll;
      return matchList
        .filter((match) => matches(match, context))
        .flatMap((match) => toRoute(match, [], route.route ?? [], { virtualService, field: 'tcp', index }, context));
    }),
  );
}

interface RouteLocation {
  readonly virtualService: ResolvedVirtualService;
  readonly field: 'tls' | 'tcp';
  readonly index: number;
}

function originOf({ virtualService: { config, origins }, field, index }: RouteLocation): Origin {
  return config.partOrigins?.[`${field}[${index}]`]?.[0] ?? { key: origins[0]!, path: ['spec', field, index] };
}

function toRoute(
  match: L4MatchAttributes,
  serverNames: readonly string[],
  route: readonly RouteDestination[],
  routeLocation: RouteLocation,
  { port, reach }: L4Context,
): L4Route[] {
  const weightedRoutes = route.length === 1 ? route : route.filter(({ weight }) => weight !== undefined && weight > 0);
  if (weightedRoutes.length === 0) return [];
  return [
    {
      serverNames: serverNames.includes('*') ? [] : serverNames,
      destinationSubnets: match.destinationSubnets ?? [],
      sourceSubnet: match.sourceSubnet,
      destinations: weightedRoutes.map(({ destination, weight }) => ({
        cluster: resolveDestination(destination, port, reach).cluster,
        weight: weight ?? 0,
      })),
      firstDestination: weightedRoutes[0]!.destination,
      dependsOn: routeLocation.virtualService.origins,
      origin: originOf(routeLocation),
    },
  ];
}

function matches(match: L4MatchAttributes, { shape, gateways, port }: L4Context): boolean {
  return (
    !match.never &&
    (match.port === undefined || match.port === port) &&
    matchesSelector(match.sourceLabels ?? {}, shape.labels) &&
    (match.sourceNamespace === undefined || match.sourceNamespace === shape.configNamespace) &&
    (!match.gateways?.length || match.gateways.some((gateway) => gateways.has(gateway)))
  );
}

/** Returns server names of the match that the hosts cover, and hosts that wildcards of the match cover. */
function narrowedNames(match: TlsMatchAttributes, hosts: readonly string[]): readonly string[] {
  const names = new Set<string>();
  for (const name of match.sniHosts) {
    for (const host of hosts) {
      if (isHostWithin(name, host)) names.add(name);
      else if (isHostWithin(host, name)) names.add(host);
    }
  }
  return [...names];
}
