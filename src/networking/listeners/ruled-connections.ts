/**
 * Determines whether a DestinationRule affects a sidecar's listeners: TCP and TLS connections (timeouts, tunnels) and services of its own workload,
 * but not HTTP requests.
 */
import { memoizeByObject } from '../../model/collections/memoize-by-object.ts';
import type { ConfigKey } from '../../model/config/config.ts';
import { HostIndex } from '../../model/fields/host-index.ts';
import { coveringKeys, isHostWithin, isWildcard } from '../../model/fields/hostname.ts';
import { isHttp } from '../../model/fields/protocol.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import type { SidecarScope } from '../../model/push-context/sidecar-scope.ts';
import type { Service } from '../../model/services/service.ts';
import { aliasChain, isAlias } from '../../model/services/service-alias.ts';
import { servicesWithin } from '../../model/services/services-within.ts';
import { carriesEndpoints } from '../traffic/shape-keys.ts';

/** Returns `false` only if the listeners are certainly unaffected. */
export function mayAffectConnections(key: ConfigKey, shape: ProxyShape, push: PushContext): boolean {
  const host = push.hostOfRule(key);
  if (host === undefined) return false;
  const scope = push.sidecarScopeFor(shape);
  // TCP and TLS routes name the destination whose rule applies.
  const routesConnections = scope.egressListeners.some(({ port, virtualServices }) => {
    return (port !== undefined && !isHttp(port.protocol)) || virtualServicesOfConnections(virtualServices).length > 0;
  });
  if (routesConnections || scope.outboundTrafficPolicy.egressProxy) return true;
  // Services of the sidecar's own workload may be outside its scope.
  if (shape.serviceTargets.some(({ service }) => isHostWithin(service.hostname, host))) return true;
  if (!isWildcard(host) && scope.serviceByHostname(host) === undefined) return false;
  const ruledServices = [...servicesWithin(scope.services, host), ...aliasesAndTargetsOf(host, scope)];
  // Logging and tracing providers are omitted if their cluster has no endpoint.
  const providers = push.mesh.extensionProviders.length > 0;
  return ruledServices.some(
    (ruledService) => receivesConnections(ruledService) || (providers && carriesEndpoints(ruledService)),
  );
}

export const virtualServicesOfConnections = memoizeByObject(
  (services: readonly ResolvedVirtualService[]): readonly ResolvedVirtualService[] =>
    services.filter(({ config }) => config.spec.tls?.length || config.spec.tcp?.length),
);

/** VirtualServices with a host that equals or, as a wildcard, contains the name, in order. */
export function virtualServicesOfHost(
  virtualServices: readonly ResolvedVirtualService[],
  name: string,
): readonly ResolvedVirtualService[] {
  const serviceIndexesByHost = serviceIndexesOf(virtualServices);
  const ruleIndexes = [...coveringKeys(name, serviceIndexesByHost)].flatMap((host) => serviceIndexesByHost.get(host)!);
  return [...new Set(ruleIndexes)].sort((a, b) => a - b).map((ruleIndex) => virtualServices[ruleIndex]!);
}

/** VirtualServices whose hosts overlap with this host, in order. If this host is a wildcard, VirtualServices for hosts under it are included. */
export function virtualServicesSharingNames(
  virtualServices: readonly ResolvedVirtualService[],
  host: string,
): readonly ResolvedVirtualService[] {
  if (!isWildcard(host)) return virtualServicesOfHost(virtualServices, host);
  return [
    ...new Set(
      matchersByName(virtualServices)
        .overlappingEntries(host)
        .map(({ item }) => item),
    ),
  ];
}

const matchersByName = memoizeByObject(
  (services: readonly ResolvedVirtualService[]) => new HostIndex(services, ({ config }) => config.spec.hosts),
);

const serviceIndexesOf = memoizeByObject(
  (services: readonly ResolvedVirtualService[]): ReadonlyMap<string, readonly number[]> => {
    const indexesByHost = new Map<string, number[]>();
    for (const [ruleIndex, { config }] of services.entries()) {
      for (const host of config.spec.hosts) {
        const indexesOfHost = indexesByHost.get(host);
        if (indexesOfHost === undefined) indexesByHost.set(host, [ruleIndex]);
        else indexesOfHost.push(ruleIndex);
      }
    }
    return indexesByHost;
  },
);

const aliasesIn = memoizeByObject((services: readonly Service[]) => services.filter(isAlias));

/** Services that a DestinationRule for the host also affects: aliases of matching services and, for matching aliases, their targets. */
function aliasesAndTargetsOf(host: string, scope: SidecarScope): readonly Service[] {
  return aliasesIn(scope.services).flatMap((alias) => {
    const chain = aliasChain(alias, (name) => scope.serviceByHostname(name));
    return chain.some(({ hostname }) => isHostWithin(hostname, host)) ? chain : [];
  });
}

function receivesConnections({ ports, resolution }: Service): boolean {
  return resolution === 'DynamicDNS' || ports.some(({ protocol }) => !isHttp(protocol));
}
