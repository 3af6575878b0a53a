/**
 * Indexes of a plan that find the virtual hosts which may differ for another client. Without them, each of hundreds of namespaces would check
 * thousands of hosts.
 */
import { memoizeByObject, memoizeByPair } from '../../../model/collections/memoize-by-object.ts';
import { isWildcard } from '../../../model/fields/hostname.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import { dependsOnClient, destinationsOf } from '../translate/virtual-service-inputs.ts';
import type { ServiceGroup } from './service-groups.ts';
import type { CachedVirtualHost } from './sidecar-virtual-hosts.ts';

type Places = ReadonlyMap<string, readonly number[]>;

interface ReusePlaces {
  readonly byDestination: Places;
  /** Indexes of groups whose virtual hosts depend on the client. */
  readonly clientDependent: readonly number[];
}

class PlacesByName {
  readonly #indexesByName = new Map<string, number[]>();

  get places(): Places {
    return this.#indexesByName;
  }

  add(name: string, index: number): void {
    const indexes = this.#indexesByName.get(name);
    if (indexes === undefined) this.#indexesByName.set(name, [index]);
    else if (indexes.at(-1) !== index) indexes.push(index);
  }
}

const reusePlaces = memoizeByObject((hosts: readonly CachedVirtualHost[]): ReusePlaces => {
  const destinationPlaces = new PlacesByName();
  const clientDependent: number[] = [];
  for (const [hostIndex, { routes, domains, virtualService }] of hosts.entries()) {
    for (const host of routes.destinationHosts) destinationPlaces.add(host, hostIndex);
    const isPlain = routes.resolutions !== undefined && domains.sharedLabelCount !== undefined;
    if (!isPlain || (virtualService !== undefined && dependsOnClient(virtualService))) clientDependent.push(hostIndex);
  }
  return { byDestination: destinationPlaces.places, clientDependent };
});

/** Group indexes by each parent domain of the host: `ns.svc.cluster.local`, `svc.cluster.local` and so on. */
const placesByDomain = memoizeByObject((groups: readonly ServiceGroup[]): Places => {
  const placesByDomainName = new PlacesByName();
  for (const [hostIndex, { service }] of groups.entries()) {
    if (!isWildcard(service.hostname))
      for (const domain of widerDomains(service.hostname)) placesByDomainName.add(domain, hostIndex);
  }
  return placesByDomainName.places;
});

/** Groups whose virtual hosts may differ for a client with the same services and VirtualServices. */
export function placesToRecheck(
  plan: { readonly groups: readonly ServiceGroup[]; readonly hosts: readonly CachedVirtualHost[] },
  groupOf: (host: number) => number,
  { differing, domains }: { readonly differing: Iterable<string>; readonly domains: readonly [string, string] },
): Set<number> {
  const { byDestination, clientDependent } = reusePlaces(plan.hosts);
  const groupIndexes = new Set(clientDependent.map(groupOf));
  for (const host of differing)
    for (const hostIndex of byDestination.get(host) ?? []) groupIndexes.add(groupOf(hostIndex));
  const domainPlaces = placesByDomain(plan.groups);
  for (const domain of distinctDomains(domains))
    for (const groupIndex of domainPlaces.get(domain) ?? []) groupIndexes.add(groupIndex);
  return groupIndexes;
}

/**
 * For each of two search domains, the widest domain that does not contain the other. Hosts outside both have the same short names for both clients.
 */
function distinctDomains([hostname, other]: readonly [string, string]): readonly string[] {
  if (hostname === other) return [];
  const [ownDomains, otherDomains] = [domainsOf(hostname), domainsOf(other)];
  const first = ownDomains.findIndex((domain, index) => domain !== otherDomains[index]);
  return (first < 0 ? [otherDomains[ownDomains.length]] : [ownDomains[first], otherDomains[first]]).filter(
    (domain) => domain !== undefined,
  );
}

function domainsOf(domain: string): readonly string[] {
  return [domain, ...widerDomains(domain)].reverse();
}

function* widerDomains(name: string): Generator<string> {
  for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) yield name.slice(dot + 1);
}

/** Maps the index of a group to the index of its first virtual host in the plan, and back. */
export interface HostPlaces {
  hostsOfGroup(group: number): number;
  groupOf(host: number): number;
}

const samePlaces: HostPlaces = { hostsOfGroup: (group) => group, groupOf: (host) => host };

interface AliasedGroups {
  readonly aliasedPlaces: readonly number[];
  readonly hostsByGroup: readonly unknown[];
}

/** Groups have several virtual hosts only if aliases of their service have their own routes. */
export function hostPlacesOf({ aliasedPlaces, hostsByGroup }: AliasedGroups): HostPlaces {
  if (aliasedPlaces.length === 0) return samePlaces;
  const aliasedCounts = aliasedPlaces.map(
    (groupIndex) => [groupIndex, (hostsByGroup[groupIndex] as readonly unknown[]).length - 1] as const,
  );
  return {
    hostsOfGroup(group) {
      let host = group;
      for (const [groupIndex, count] of aliasedCounts) if (groupIndex < group) host += count;
      return host;
    },
    groupOf(host) {
      let group = host;
      for (const [groupIndex, count] of aliasedCounts)
        if (groupIndex < group) group -= Math.min(count, group - groupIndex);
      return group;
    },
  };
}

const placesByHost = memoizeByObject((groups: readonly ServiceGroup[]): ReadonlyMap<string, readonly number[]> => {
  const indexesByHost = new Map<string, number[]>();
  for (const [groupIndex, { service }] of groups.entries()) {
    const indexes = indexesByHost.get(service.hostname);
    if (indexes === undefined) indexesByHost.set(service.hostname, [groupIndex]);
    else indexes.push(groupIndex);
  }
  return indexesByHost;
});

const noPlaces: readonly number[] = [];

export function aliasedPlacesOf(
  groups: readonly ServiceGroup[],
  aliases: ReadonlyMap<string, unknown>,
): readonly number[] {
  if (aliases.size === 0) return noPlaces;
  const indexesByHost = placesByHost(groups);
  return [...aliases.keys()].flatMap((host) => indexesByHost.get(host) ?? []).sort((a, b) => a - b);
}

/** Group indexes by the destinations of their routes, ignoring aliases. */
export const placesByDestination = memoizeByPair(
  (groups: readonly ServiceGroup[], virtualServices: readonly (ResolvedVirtualService | undefined)[]): Places => {
    const hostPlaces = new PlacesByName();
    for (const [groupIndex, { service }] of groups.entries()) {
      const rule = virtualServices[groupIndex];
      for (const host of rule === undefined ? [service.hostname] : destinationsOf(rule))
        hostPlaces.add(host, groupIndex);
    }
    return hostPlaces.places;
  },
);
