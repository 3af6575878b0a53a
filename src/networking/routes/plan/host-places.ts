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

/** Ascending, distinct indexes by name. */
class PlacesByName {
  readonly #places = new Map<string, number[]>();

  get places(): Places {
    return this.#places;
  }

  add(name: string, place: number): void {
    const known = this.#places.get(name);
    if (known === undefined) this.#places.set(name, [place]);
    else if (known.at(-1) !== place) known.push(place);
  }
}

const reusePlaces = memoizeByObject((hosts: readonly CachedVirtualHost[]): ReusePlaces => {
  const byDestination = new PlacesByName();
  const clientDependent: number[] = [];
  for (const [place, { routes, domains, virtualService }] of hosts.entries()) {
    for (const host of routes.destinationHosts) byDestination.add(host, place);
    const isPlain = routes.resolutions !== undefined && domains.sharedLabelCount !== undefined;
    if (!isPlain || (virtualService !== undefined && dependsOnClient(virtualService))) clientDependent.push(place);
  }
  return { byDestination: byDestination.places, clientDependent };
});

/** Group indexes by each parent domain of the host: `ns.svc.cluster.local`, `svc.cluster.local` and so on. */
const placesByDomain = memoizeByObject((groups: readonly ServiceGroup[]): Places => {
  const byDomain = new PlacesByName();
  for (const [place, { service }] of groups.entries()) {
    if (!isWildcard(service.hostname)) for (const domain of widerDomains(service.hostname)) byDomain.add(domain, place);
  }
  return byDomain.places;
});

/**
 * Groups whose virtual hosts may differ for a client with the same services and VirtualServices.
 *
 * @param groupOf maps a virtual host's index to its group's
 */
export function placesToRecheck(
  plan: { readonly groups: readonly ServiceGroup[]; readonly hosts: readonly CachedVirtualHost[] },
  groupOf: (host: number) => number,
  { differing, domains }: { readonly differing: Iterable<string>; readonly domains: readonly [string, string] },
): Set<number> {
  const { byDestination, clientDependent } = reusePlaces(plan.hosts);
  const places = new Set(clientDependent.map(groupOf));
  for (const host of differing) for (const place of byDestination.get(host) ?? []) places.add(groupOf(place));
  const within = placesByDomain(plan.groups);
  for (const domain of distinctDomains(domains)) for (const place of within.get(domain) ?? []) places.add(place);
  return places;
}

/**
 * For each of two search domains, the widest domain that does not contain the other. Hosts outside both have the same short names for both clients.
 */
function distinctDomains([one, other]: readonly [string, string]): readonly string[] {
  if (one === other) return [];
  const [ofOne, ofOther] = [domainsOf(one), domainsOf(other)];
  const first = ofOne.findIndex((domain, index) => domain !== ofOther[index]);
  return (first < 0 ? [ofOther[ofOne.length]] : [ofOne[first], ofOther[first]]).filter(
    (domain) => domain !== undefined,
  );
}

/** The domain and all its parent domains, widest first. */
function domainsOf(domain: string): readonly string[] {
  return [domain, ...widerDomains(domain)].reverse();
}

function* widerDomains(name: string): Generator<string> {
  for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) yield name.slice(dot + 1);
}

/** Maps the index of a group to the index of its first virtual host in the plan, and back. */
export interface HostPlaces {
  ofGroup(group: number): number;
  groupOf(host: number): number;
}

const samePlaces: HostPlaces = { ofGroup: (group) => group, groupOf: (host) => host };

interface AliasedGroups {
  readonly aliasedPlaces: readonly number[];
  readonly hostsByGroup: readonly unknown[];
}

/** Groups have several virtual hosts only if aliases of their service have their own routes. */
export function hostPlacesOf({ aliasedPlaces, hostsByGroup }: AliasedGroups): HostPlaces {
  if (aliasedPlaces.length === 0) return samePlaces;
  const more = aliasedPlaces.map((place) => [place, (hostsByGroup[place] as readonly unknown[]).length - 1] as const);
  return {
    ofGroup(group) {
      let host = group;
      for (const [place, count] of more) if (place < group) host += count;
      return host;
    },
    groupOf(host) {
      let group = host;
      for (const [place, count] of more) if (place < group) group -= Math.min(count, group - place);
      return group;
    },
  };
}

const placesByHost = memoizeByObject((groups: readonly ServiceGroup[]): ReadonlyMap<string, readonly number[]> => {
  const places = new Map<string, number[]>();
  for (const [place, { service }] of groups.entries()) {
    const known = places.get(service.hostname);
    if (known === undefined) places.set(service.hostname, [place]);
    else known.push(place);
  }
  return places;
});

const noPlaces: readonly number[] = [];

/** Ascending indexes of groups whose services have aliases. */
export function aliasedPlacesOf(
  groups: readonly ServiceGroup[],
  aliases: ReadonlyMap<string, unknown>,
): readonly number[] {
  if (aliases.size === 0) return noPlaces;
  const places = placesByHost(groups);
  return [...aliases.keys()].flatMap((host) => places.get(host) ?? []).sort((a, b) => a - b);
}

/**
 * Group indexes by the destinations of their routes, ignoring aliases. Computed once for all clients with the same
 * VirtualServices.
 */
export const placesByDestination = memoizeByPair(
  (groups: readonly ServiceGroup[], virtualServices: readonly (ResolvedVirtualService | undefined)[]): Places => {
    const byHost = new PlacesByName();
    for (const [place, { service }] of groups.entries()) {
      const rule = virtualServices[place];
      for (const host of rule === undefined ? [service.hostname] : destinationsOf(rule)) byHost.add(host, place);
    }
    return byHost.places;
  },
);
