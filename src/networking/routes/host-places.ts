/**
 * Where in a plan the virtual hosts are that another client may get otherwise: they are looked up, for a client of each of some
 * hundred namespaces would ask each of thousands.
 */
import { onceFor } from '../../model/collections/once-for.ts';
import { isWildcard } from '../../model/fields/hostname.ts';
import type { ServiceGroup } from './service-groups.ts';
import type { MadeVirtualHost } from './sidecar-virtual-hosts.ts';
import { looksAtClient } from './virtual-service-inputs.ts';

type Places = ReadonlyMap<string, readonly number[]>;

interface UsePlaces {
  readonly leadingTo: Places;
  /** Of those who are asked about every client. */
  readonly always: readonly number[];
}

const placesByUse = onceFor((hosts: readonly MadeVirtualHost[]): UsePlaces => {
  const leadingTo = new Map<string, number[]>();
  const always: number[] = [];
  for (const [place, { routes, domains, over }] of hosts.entries()) {
    for (const host of routes.leadsTo) add(leadingTo, host, place);
    const isPlain = routes.meant !== undefined && domains.shared !== undefined;
    if (!isPlain || (over !== undefined && looksAtClient(over))) always.push(place);
  }
  return { leadingTo, always };
});

/** By each domain that a host is within: `ns.svc.cluster.local`, `svc.cluster.local` and so on. */
const placesByDomain = onceFor((groups: readonly ServiceGroup[]): Places => {
  const places = new Map<string, number[]>();
  for (const [place, { service }] of groups.entries()) {
    // A wildcard has no short names.
    if (!isWildcard(service.hostname)) for (const domain of widerDomains(service.hostname)) add(places, domain, place);
  }
  return places;
});

/** Virtual hosts of a plan that may be others for a client that has routes by the same rules for the same services. */
export function doubtfulPlaces(
  plan: { readonly groups: readonly ServiceGroup[]; readonly hosts: readonly MadeVirtualHost[] },
  { differing, domains }: { readonly differing: Iterable<string>; readonly domains: readonly [string, string] },
): Set<number> {
  const { leadingTo, always } = placesByUse(plan.hosts);
  const places = new Set(always);
  const addAll = (more: readonly number[] = []): void => {
    for (const place of more) places.add(place);
  };
  for (const host of differing) addAll(leadingTo.get(host));
  const within = placesByDomain(plan.groups);
  for (const domain of ownDomains(domains)) addAll(within.get(domain));
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

function add(places: Map<string, number[]>, key: string, place: number): void {
  const known = places.get(key);
  if (known === undefined) places.set(key, [place]);
  else if (known.at(-1) !== place) known.push(place);
}
