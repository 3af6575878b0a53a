import {
  coveringKeys,
  isHostWithin,
  isPartialWildcard,
  isWildcard,
  widerHosts,
} from '../../../model/fields/hostname.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import type { SidecarScope } from '../../../model/push-context/sidecar-scope.ts';
import type { Service } from '../../../model/services/service.ts';
import { aliasTarget, isAlias } from '../../../model/services/service-alias.ts';
import type { ServiceGroup } from './service-groups.ts';
import type { RouteSelection } from './sidecar-virtual-hosts.ts';
import type { ClientVirtualServices, VirtualServicesByHost } from './virtual-services-by-host.ts';

/** Hosts without a service have only this port. */
const portOfUnknownHosts = 80;

export interface UnknownHost {
  readonly hostname: string;
  readonly port: number;
  readonly virtualService: ResolvedVirtualService;
}

interface UnknownHosts {
  readonly services: readonly Service[];
  readonly scopeServices: readonly Service[];
  readonly hosts: readonly UnknownHost[];
}

const unknownHostsByGroups = new WeakMap<readonly ServiceGroup[], WeakMap<VirtualServicesByHost, UnknownHosts>>();

export function unknownHosts(
  selection: RouteSelection,
  groups: readonly ServiceGroup[],
  virtualServicesOfClient: ClientVirtualServices,
  scope: SidecarScope,
): readonly UnknownHost[] {
  if (selection.host !== undefined) return [];
  const findHosts = (): readonly UnknownHost[] => {
    const portOf = portOfUnknown(selection, groups, scope);
    return [...virtualServicesOfClient.hosts].flatMap((hostname) => {
      const port = portOf(hostname);
      const virtualService = port === undefined ? undefined : virtualServicesOfClient.forPort(port).get(hostname);
      return port === undefined || virtualService === undefined ? [] : [{ hostname, port, virtualService }];
    });
  };
  // In a configuration for one port, all VirtualServices are those of that port.
  if (selection.port === undefined && !virtualServicesOfClient.isSameAtAllPorts) return findHosts();
  const servicesByHost = virtualServicesOfClient.forPort(selection.listenerPort);
  const cachedByVirtualServices =
    unknownHostsByGroups.get(groups) ?? new WeakMap<VirtualServicesByHost, UnknownHosts>();
  unknownHostsByGroups.set(groups, cachedByVirtualServices);
  const { services } = selection.egress;
  let cachedNames = cachedByVirtualServices.get(servicesByHost);
  if (cachedNames?.services !== services || cachedNames.scopeServices !== scope.services) {
    cachedNames = { services, scopeServices: scope.services, hosts: findHosts() };
    cachedByVirtualServices.set(servicesByHost, cachedNames);
  }
  return cachedNames.hosts;
}

/**
 * Returns the port of a VirtualService host without a service: the port of a wildcard service that covers the host, otherwise 80. Returns `undefined`
 * for a wildcard that covers services, because these have their own virtual hosts.
 */
function portOfUnknown(
  selection: RouteSelection,
  groups: readonly ServiceGroup[],
  scope: SidecarScope,
): (hostname: string) => number | undefined {
  const { services } = selection.egress;
  const serviceNames = resolvableNames(services, scope);
  const wildcards = new Map<string, number>();
  for (const [groupIndex, { service }] of groups.entries()) {
    if (isWildcard(service.hostname) && !wildcards.has(service.hostname)) wildcards.set(service.hostname, groupIndex);
  }
  const isAboveServices = coversServices(services);
  const onUnknownPort = selection.port === undefined || selection.port === portOfUnknownHosts;
  return (hostname) => {
    if (serviceNames.has(hostname)) return undefined;
    const coveringIndexes =
      wildcards.size === 0 ? [] : [...coveringKeys(hostname, wildcards)].map((host) => wildcards.get(host)!);
    if (coveringIndexes.length > 0) return groups[Math.min(...coveringIndexes)]!.port.number;
    if (isWildcard(hostname) && isAboveServices(hostname)) return undefined;
    return onUnknownPort ? portOfUnknownHosts : undefined;
  };
}

/** Computes the names only once, because there may be as many wildcards as services. */
function coversServices(services: readonly Service[]): (wildcard: string) => boolean {
  let wildcardNames: Names | undefined;
  return (wildcard) => {
    if (isPartialWildcard(wildcard)) return services.some(({ hostname }) => isHostWithin(hostname, wildcard));
    wildcardNames ??= new Set(services.flatMap(({ hostname }) => [...widerHosts(hostname)]));
    return wildcardNames.has(wildcard);
  };
}

type Names = ReadonlySet<string>;
const namesOfServices = new WeakMap<readonly Service[], WeakMap<readonly Service[], Names>>();

/** Hosts of services, except aliases without a target. */
function resolvableNames(services: readonly Service[], scope: SidecarScope): Names {
  const namesByReach = namesOfServices.get(services) ?? new WeakMap<readonly Service[], Names>();
  namesOfServices.set(services, namesByReach);
  let names = namesByReach.get(scope.services);
  if (names === undefined) {
    const targetOf = (service: Service) => aliasTarget(service, (host) => scope.serviceByHostname(host));
    const resolvableServices = services.filter((service) => !isAlias(service) || targetOf(service) !== undefined);
    names = new Set(resolvableServices.map(({ hostname }) => hostname));
    namesByReach.set(scope.services, names);
  }
  return names;
}
