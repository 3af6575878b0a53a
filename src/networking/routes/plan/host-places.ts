/**
 * Indexes of a plan. They find virtual hosts that may differ for another client, so that hundreds of namespaces need not check thousands of hosts
 * each.
 */
import { memoizeByObject, memoizeByPair } from '../../../model/collections/memoize-by-object.ts';
import { isWildcard } from '../../../model/fields/hostname.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import { dependsOnClient, destinationsOf } from '../translate/virtual-service-inputs.ts';
import type { ServiceGroup } from './service-groups.ts';
import type { CachedVirtualHost } from './sidecar-virtual-hosts.ts';

type IndexesByName = ReadonlyMap<string, readonly number[]>;

interface ReusableHostIndexes {
  readonly byDestination: IndexesByName;
  /** Indexes of groups whose virtual hosts depend on the client. */
  readonly clientDependent: readonly number[];
}

class NameIndexBuilder {
  readonly #indexesByName = new Map<string, number[]>();

  get indexes(): IndexesByName {
    return this.#indexesByName;
  }

  add(name: string, index: number): void {
    const indexes = this.#indexesByName.get(name);
    if (indexes === undefined) this.#indexesByName.set(name, [index]);
    else if (indexes.at(-1) !== index) indexes.push(index);
  }
}

const reusableIndexesOf = memoizeByObject((hosts: readonly CachedVirtualHost[]): ReusableHostIndexes => {
  const destinationIndexes = new NameIndexBuilder();
  const clientDependentIndexes: number[] = [];
  for (const [hostIndex, { routes, domains, virtualService }] of hosts.entries()) {
    for (const host of routes.destinationHosts) destinationIndexes.add(host, hostIndex);
    const isPlain = routes.resolutions !== undefined && domains.sharedLabelCount !== undefined;
    if (!isPlain || (virtualService !== undefined && dependsOnClient(virtualService)))
      clientDependentIndexes.push(hostIndex);
  }
  return { byDestination: destinationIndexes.indexes, clientDependent: clientDependentIndexes };
});

/** Group indexes by each parent domain of the host: `ns.svc.cluster.local`, `svc.cluster.local` and so on. */
const groupIndexesByDomain = memoizeByObject((groups: readonly ServiceGroup[]): IndexesByName => {
  const domainIndexes = new NameIndexBuilder();
  for (const [hostIndex, { service }] of groups.entries()) {
    if (!isWildcard(service.hostname))
      for (const domain of widerDomains(service.hostname)) domainIndexes.add(domain, hostIndex);
  }
  return domainIndexes.indexes;
});

/** Groups whose virtual hosts may differ for a client with the same services and VirtualServices. */
export function groupIndexesToRecheck(
  plan: { readonly groups: readonly ServiceGroup[]; readonly hosts: readonly CachedVirtualHost[] },
  groupOf: (host: number) => number,
  { differing, domains }: { readonly differing: Iterable<string>; readonly domains: readonly [string, string] },
): Set<number> {
  const { byDestination, clientDependent } = reusableIndexesOf(plan.hosts);
  const groupIndexes = new Set(clientDependent.map(groupOf));
  for (const host of differing)
    for (const hostIndex of byDestination.get(host) ?? []) groupIndexes.add(groupOf(hostIndex));
  const indexesOfDomains = groupIndexesByDomain(plan.groups);
  for (const domain of distinctDomains(domains))
    for (const groupIndex of indexesOfDomains.get(domain) ?? []) groupIndexes.add(groupIndex);
  return groupIndexes;
}

/**
 * For each of two search domains, its widest part that does not contain the other domain. Hosts outside both parts have the same short names for both
 * clients.
 */
function distinctDomains([hostname, otherHostname]: readonly [string, string]): readonly string[] {
  if (hostname === otherHostname) return [];
  const [clientDomains, otherDomains] = [domainsOf(hostname), domainsOf(otherHostname)];
  const firstDifference = clientDomains.findIndex((domain, index) => domain !== otherDomains[index]);
  return (
    firstDifference < 0
      ? [otherDomains[clientDomains.length]]
      : [clientDomains[firstDifference], otherDomains[firstDifference]]
  ).filter((domain) => domain !== undefined);
}

function domainsOf(domain: string): readonly string[] {
  return [domain, ...widerDomains(domain)].reverse();
}

function* widerDomains(name: string): Generator<string> {
  for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) yield name.slice(dot + 1);
}

/** Maps the index of a group to the index of its first virtual host in the plan, and back. */
export interface GroupHostMapping {
  hostsOfGroup(group: number): number;
  groupOf(host: number): number;
}

const identityMapping: GroupHostMapping = { hostsOfGroup: (group) => group, groupOf: (host) => host };

interface AliasedGroups {
  readonly aliasedPlaces: readonly number[];
  readonly hostsByGroup: readonly unknown[];
}

/** Groups have several virtual hosts only if aliases of their service have their own routes. */
export function groupHostMappingOf({ aliasedPlaces, hostsByGroup }: AliasedGroups): GroupHostMapping {
  if (aliasedPlaces.length === 0) return identityMapping;
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

const groupIndexesByHost = memoizeByObject(
  (groups: readonly ServiceGroup[]): ReadonlyMap<string, readonly number[]> => {
    const indexesByHost = new Map<string, number[]>();
    for (const [groupIndex, { service }] of groups.entries()) {
      const indexes = indexesByHost.get(service.hostname);
      if (indexes === undefined) indexesByHost.set(service.hostname, [groupIndex]);
      else indexes.push(groupIndex);
    }
    return indexesByHost;
  },
);

const emptyIndexes: readonly number[] = [];

export function aliasedGroupIndexesOf(
  groups: readonly ServiceGroup[],
  aliases: ReadonlyMap<string, unknown>,
): readonly number[] {
  if (aliases.size === 0) return emptyIndexes;
  const indexesByHost = groupIndexesByHost(groups);
  return [...aliases.keys()].flatMap((host) => indexesByHost.get(host) ?? []).sort((a, b) => a - b);
}

/** Group indexes by the destinations of their routes, ignoring aliases. */
export const groupIndexesByDestination = memoizeByPair(
  (
    groups: readonly ServiceGroup[],
    virtualServices: readonly (ResolvedVirtualService | undefined)[],
  ): IndexesByName => {
    const hostIndexes = new NameIndexBuilder();
    for (const [groupIndex, { service }] of groups.entries()) {
      const rule = virtualServices[groupIndex];
      for (const host of rule === undefined ? [service.hostname] : destinationsOf(rule))
        hostIndexes.add(host, groupIndex);
    }
    return hostIndexes.indexes;
  },
);
