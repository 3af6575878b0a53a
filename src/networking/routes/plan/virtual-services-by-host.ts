import { memoizeByObject, memoizeByPair } from '../../../model/collections/memoize-by-object.ts';
import { setBounded } from '../../../model/collections/set-bounded.ts';
import { mostSpecificKey } from '../../../model/fields/hostname.ts';
import type { HttpMatchRequest, HttpRoute } from '../../../model/kinds/virtual-service/virtual-service.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import { usedDestinations } from '../translate/action.ts';
import { appliesTo } from '../translate/match.ts';
import type { ServiceGroup } from './service-groups.ts';

export type VirtualServicesByHost = ReadonlyMap<string, ResolvedVirtualService>;

export interface ClientVirtualServices {
  /** All hosts with a VirtualService, even if none applies to this client. */
  readonly hosts: Iterable<string>;
  /** True if no match has a port condition. */
  readonly isSameAtAllPorts: boolean;
  /** Returns the same map for ports with the same results. */
  forPort(port: number): VirtualServicesByHost;
}

/**
 * Selects the first VirtualService of a host that has a route for the client. Others are skipped, so that a VirtualService for other clients does not
 * leave requests without a route.
 */
export function virtualServicesForClient(
  virtualServices: readonly ResolvedVirtualService[],
  shape: ProxyShape,
): ClientVirtualServices {
  const { firstServiceByHost, conditionalServices, matchesPort } = indexServices(virtualServices);
  const cachedByPort = new Map<number, VirtualServicesByHost>();
  const servicesForPort = (port: number): VirtualServicesByHost => {
    const cachedByHost = cachedByPort.get(port);
    if (cachedByHost !== undefined) return cachedByHost;
    const servicesByHost =
      conditionalServices.length === 0 ? firstServiceByHost : servicesByHostForClient(virtualServices, shape, port);
    cachedByPort.set(port, servicesByHost);
    return servicesByHost;
  };
  return { hosts: firstServiceByHost.keys(), isSameAtAllPorts: !matchesPort, forPort: servicesForPort };
}

export function virtualServicesOfGroups(
  groups: readonly ServiceGroup[],
  virtualServicesOfClient: ClientVirtualServices,
  listenerPort: number,
): readonly (ResolvedVirtualService | undefined)[] {
  if (listenerPort !== 0 || virtualServicesOfClient.isSameAtAllPorts)
    return virtualServicesOfAll(groups, virtualServicesOfClient.forPort(listenerPort));
  return groups.map((group) => virtualServiceOf(group, virtualServicesOfClient.forPort(group.port.number)));
}

interface IndexedVirtualServices {
  readonly firstServiceByHost: VirtualServicesByHost;
  readonly conditionalServices: readonly ResolvedVirtualService[];
  readonly matchesPort: boolean;
  /** Results by the {@link conditionalServices} that have no route. */
  readonly cachedByExcluded: Map<string, VirtualServicesByHost>;
}

const indexServices = memoizeByObject((virtualServices: readonly ResolvedVirtualService[]): IndexedVirtualServices => {
  const conditionalServices = virtualServices.filter((service) => !matchFactsOf(service).appliesToAll);
  const matchesPort = conditionalServices.some((service) =>
    matchFactsOf(service).matches.some(({ port }) => port !== undefined),
  );
  return {
    firstServiceByHost: firstByHost(virtualServices, noExcludedServices),
    conditionalServices: conditionalServices,
    matchesPort,
    cachedByExcluded: new Map(),
  };
});

const noExcludedServices: ReadonlySet<ResolvedVirtualService> = new Set();

/** Cache limit. Few VirtualServices have client conditions, so most clients get equal results. */
const maxVariants = 64;

function servicesByHostForClient(
  virtualServices: readonly ResolvedVirtualService[],
  shape: ProxyShape,
  port: number,
): VirtualServicesByHost {
  const { firstServiceByHost, conditionalServices, cachedByExcluded } = indexServices(virtualServices);
  const context = { shape, gateway: 'mesh', listenerPort: port };
  const excludedIndexes = conditionalServices.flatMap((service, conditionalIndex) =>
    matchFactsOf(service).matches.some((match) => appliesTo(match, context)) ? [] : [conditionalIndex],
  );
  if (excludedIndexes.length === 0) return firstServiceByHost;
  const key = excludedIndexes.join();
  let servicesByHost = cachedByExcluded.get(key);
  if (servicesByHost === undefined) {
    servicesByHost = firstByHost(
      virtualServices,
      new Set(excludedIndexes.map((conditionalIndex) => conditionalServices[conditionalIndex]!)),
    );
    setBounded(cachedByExcluded, key, servicesByHost, maxVariants);
  }
  return servicesByHost;
}

function firstByHost(
  virtualServices: readonly ResolvedVirtualService[],
  excludedServices: ReadonlySet<ResolvedVirtualService>,
): VirtualServicesByHost {
  const servicesByHost = new Map<string, ResolvedVirtualService>();
  for (const virtualService of virtualServices) {
    if (excludedServices.has(virtualService) || matchFactsOf(virtualService).matches.length === 0) continue;
    for (const host of virtualService.config.spec.hosts)
      if (!servicesByHost.has(host)) servicesByHost.set(host, virtualService);
  }
  return servicesByHost;
}

interface MatchFacts {
  readonly matches: readonly HttpMatchRequest[];
  /** Whether one of the matches applies to all clients. */
  readonly appliesToAll: boolean;
}

const matchAll: readonly HttpMatchRequest[] = [{}];

const matchFactsOf = memoizeByObject(({ config }: ResolvedVirtualService): MatchFacts => {
  const matches = (config.spec.http ?? []).filter(hasEffect).flatMap(({ match }) => (match?.length ? match : matchAll));
  return { matches, appliesToAll: matches.length === 0 || matches.some(matchesAllClients) };
});

function hasEffect(http: HttpRoute): boolean {
  return http.redirect !== undefined || http.directResponse !== undefined || usedDestinations(http).length > 0;
}

function matchesAllClients({ never, port, sourceLabels, sourceNamespace, gateways }: HttpMatchRequest): boolean {
  const hasNoSourceMatch = Object.keys(sourceLabels ?? {}).length === 0 && sourceNamespace === undefined;
  return !never && port === undefined && hasNoSourceMatch && (!gateways?.length || gateways.includes('mesh'));
}

const virtualServicesOfAll = memoizeByPair(
  (
    groups: readonly ServiceGroup[],
    servicesByHost: VirtualServicesByHost,
  ): readonly (ResolvedVirtualService | undefined)[] => groups.map((group) => virtualServiceOf(group, servicesByHost)),
);

function virtualServiceOf(
  { service: { hostname } }: ServiceGroup,
  servicesByHost: VirtualServicesByHost,
): ResolvedVirtualService | undefined {
  const exactService = servicesByHost.get(hostname);
  if (exactService !== undefined) return exactService;
  const host = mostSpecificKey(hostname, servicesByHost);
  return host === undefined ? undefined : servicesByHost.get(host);
}
