/**
 * Where in a plan the virtual hosts are that another client may get otherwise: they are looked up, for a client of each of some
 * hundred namespaces would ask each of thousands.
 */
import { onceFor, onceForPair } from '../../../model/collections/once-for.ts';
import { isWildcard } from '../../../model/fields/hostname.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import { destinationsOf, looksAtClient } from '../translate/virtual-service-inputs.ts';
import type { ServiceGroup } from './service-groups.ts';
import type { MadeVirtualHost } from './sidecar-virtual-hosts.ts';

type Places = ReadonlyMap<string, readonly number[]>;

interface UsePlaces {
  readonly leadingTo: Places;
  /** Places of groups that are looked at for every client. */
  readonly always: readonly number[];
}

/** Places by name; in order, each once. */
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

const placesByUse = onceFor((hosts: readonly MadeVirtualHost[]): UsePlaces => {
  const leadingTo = new PlacesByName();
  const always: number[] = [];
  for (const [place, { routes, domains, over }] of hosts.entries()) {
    for (const host of routes.leadsTo) leadingTo.add(host, place);
    const isPlain = routes.meant !== undefined && domains.shared !== undefined;
    if (!isPlain || (over !== undefined && looksAtClient(over))) always.push(place);
  }
  return { leadingTo: leadingTo.places, always };
});

/** By each domain that a host is within: `ns.svc.cluster.local`, `svc.cluster.local` and so on. */
const placesByDomain = onceFor((groups: readonly ServiceGroup[]): Places => {
  const byDomain = new PlacesByName();
  for (const [place, { service }] of groups.entries()) {
    // A wildcard has no short names.
    if (!isWildcard(service.hostname)) for (const domain of widerDomains(service.hostname)) byDomain.add(domain, place);
  }
  return byDomain.places;
});

/**
 * Groups of a plan whose virtual hosts may be others for a client that has routes by the same rules for the same services.
 *
 * @param groupOf by a virtual host's place the place of its group
 */
export function doubtfulPlaces(
  plan: { readonly groups: readonly ServiceGroup[]; readonly hosts: readonly MadeVirtualHost[] },
  groupOf: (host: number) => number,
  { differing, domains }: { readonly differing: Iterable<string>; readonly domains: readonly [string, string] },
): Set<number> {
  const { leadingTo, always } = placesByUse(plan.hosts);
  const places = new Set(always.map(groupOf));
  for (const host of differing) for (const place of leadingTo.get(host) ?? []) places.add(groupOf(place));
  const within = placesByDomain(plan.groups);
  for (const domain of ownDomains(domains)) for (const place of within.get(domain) ?? []) places.add(place);
  return places;
}

/** The widest domain of each of two clients that is not the other's: hosts beyond have the same short names for both. */
function ownDomains([one, other]: readonly [string, string]): readonly string[] {
  if (one === other) return [];
  const [ofOne, ofOther] = [domainsOf(one), domainsOf(other)];
  const first = ofOne.findIndex((domain, index) => domain !== ofOther[index]);
  return (first < 0 ? [ofOther[ofOne.length]] : [ofOne[first], ofOther[first]]).filter(
    (domain) => domain !== undefined,
  );
}

/** A domain and those that it is within, the widest first. */
function domainsOf(domain: string): readonly string[] {
  return [domain, ...widerDomains(domain)].reverse();
}

function* widerDomains(name: string): Generator<string> {
  for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) yield name.slice(dot + 1);
}

/** Where in the list of all virtual hosts those of each group begin, and whose each is. */
export interface HostPlaces {
  of(group: number): number;
  groupOf(host: number): number;
}

const asGroups: HostPlaces = { of: (group) => group, groupOf: (host) => host };

/** What there is of each group: a list for those that are named, and one virtual host for the others. */
interface GroupsWithNames {
  readonly named: readonly number[];
  readonly ofGroups: readonly unknown[];
}

/** Few groups have several. */
export function hostPlacesOf({ named, ofGroups }: GroupsWithNames): HostPlaces {
  if (named.length === 0) return asGroups;
  const more = named.map((place) => [place, (ofGroups[place] as readonly unknown[]).length - 1] as const);
  return {
    of(group) {
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

const placesByHost = onceFor((groups: readonly ServiceGroup[]): ReadonlyMap<string, readonly number[]> => {
  const places = new Map<string, number[]>();
  for (const [place, { service }] of groups.entries()) {
    const known = places.get(service.hostname);
    if (known === undefined) places.set(service.hostname, [place]);
    else known.push(place);
  }
  return places;
});

const nowhere: readonly number[] = [];

/** Places of the groups of which services are another name, by the host names of those services. */
export function namedPlaces(groups: readonly ServiceGroup[], aliases: ReadonlyMap<string, unknown>): readonly number[] {
  if (aliases.size === 0) return nowhere;
  const places = placesByHost(groups);
  return [...aliases.keys()].flatMap((host) => places.get(host) ?? []).sort((a, b) => a - b);
}

/** Groups by the hosts that their routes lead to, where no name stands for another: once for all who have the same rules for them. */
export const placesLeadingTo = onceForPair(
  (groups: readonly ServiceGroup[], over: readonly (ResolvedVirtualService | undefined)[]): Places => {
    const byHost = new PlacesByName();
    for (const [place, { service }] of groups.entries()) {
      const rule = over[place];
      for (const host of rule === undefined ? [service.hostname] : destinationsOf(rule)) byHost.add(host, place);
    }
    return byHost.places;
  },
);
