/**
 * The virtual hosts of one sidecar route configuration, in order (§8.5). The next plan is made from the last one: what
 * nothing touched is taken over without being asked for, so a change costs what it touches and one look at each host.
 */

import { listDiff } from '../../model/collections/list-diff.ts';
import { sameItems } from '../../model/collections/same-items.ts';
import { type ConfigKey, compareText } from '../../model/config/config.ts';
import { isHostWithin, isWildcard } from '../../model/fields/hostname.ts';
import type { ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import type { RuleRevision } from '../../model/push-context/rule-revision.ts';
import type { SidecarScope } from '../../model/push-context/sidecar-scope.ts';
import type { Service } from '../../model/services/service.ts';
import { isAlias, serviceBehind } from '../../model/services/service-alias.ts';
import { aliasesOf, namedBy, virtualServiceOver } from '../traffic/alias.ts';
import type { Reach } from '../traffic/reach.ts';
import { type ServiceGroup, serviceGroups } from './service-groups.ts';
import {
  type MadeVirtualHost,
  makeVirtualHost,
  type RouteSelection,
  type Surroundings,
  type Wanted,
  withDomains,
} from './sidecar-virtual-hosts.ts';
import type { VirtualHostPart } from './virtual-host-part.ts';
import { type ByHost, oldestByHost, virtualServicesOver } from './virtual-services-by-host.ts';

export interface RoutePlan {
  /** Sorted by name. The very same list as before while nothing in it is another. */
  readonly parts: readonly VirtualHostPart[];
  /** What all parts are made from. */
  readonly routesDependOn: () => readonly ConfigKey[];
  /** One of them takes whatever no other does. */
  readonly takesAll: boolean;
  /** Nothing: whoever looks it up brings all that it depends on, and a new one comes in its place. */
  readonly dependsOn: readonly ConfigKey[];
  readonly made: Made;
  readonly claimed: Claimed;
}

/** What was made, and from what. */
interface Made {
  readonly groups: readonly ServiceGroup[];
  /** For each group; several where names of it have routes of their own. */
  readonly ofGroups: readonly (MadeVirtualHost | readonly MadeVirtualHost[])[];
  /** Of names that no service has. */
  readonly ofUnknown: ReadonlyMap<string, MadeVirtualHost>;
  readonly services: readonly Service[];
  readonly rules: RuleRevision;
}

/** Which virtual host has which domains. */
interface Claimed {
  /** All virtual hosts, in the order in which they claim domains: the first to want one has it. */
  readonly hosts: readonly MadeVirtualHost[];
  /** With the domains that were left; absent for those that got none. */
  readonly parts: readonly (VirtualHostPart | undefined)[];
  /** Places of the parts in {@link parts}, sorted by name. */
  readonly order: Uint32Array;
  readonly takesAll: boolean;
}

/** Host names that no registry knows are served on this port alone. */
const portOfUnknownHosts = 80;

/** @param key what of the client the plan is for, and for which configuration */
export function routePlan(key: string, around: Surroundings): RoutePlan {
  const { selection, scope, push, memory } = around;
  const { services, virtualServices } = selection.egress;
  const rules = push.destinationRuleRevision;
  const inputs = [services, scope.services, virtualServices, rules, push.mesh];
  const make = (before: RoutePlan | undefined): RoutePlan => nextPlan(before, around);
  // There is no end of names that somebody may ask for.
  return selection.host === undefined ? memory.recall('RDS', `plan ${key}`, inputs, make) : make(undefined);
}

function nextPlan(before: RoutePlan | undefined, around: Surroundings): RoutePlan {
  const made = makeAll(before?.made, around);
  const hosts = inOrder(made);
  if (before !== undefined && sameItems(before.claimed.hosts, hosts)) return { ...before, made };
  const sorts = around.selection.host === undefined;
  const claimed =
    before !== undefined && wantTheSame(before.claimed.hosts, hosts)
      ? claimedAgain(before.claimed, hosts)
      : claim(hosts, sorts);
  const parts = Array.from(claimed.order, (place) => claimed.parts[place]!);
  const routesDependOn = (): readonly ConfigKey[] => hosts.flatMap(({ routes }) => routes.dependsOn);
  return { parts, routesDependOn, takesAll: claimed.takesAll, dependsOn: [], made, claimed };
}

/** Hosts whose services or rules are not what they were; undefined: any. */
type Touched = { readonly names: ReadonlySet<string>; readonly wildcards: readonly string[] } | undefined;

function touchedSince(before: Made, services: readonly Service[], rules: RuleRevision): Touched {
  const hosts = rules.changedSince(before.rules);
  if (hosts === undefined) return undefined;
  const { removed, added } = listDiff(before.services, services);
  const names = new Set([...hosts, ...[...removed, ...added].map(({ hostname }) => hostname)]);
  return { names, wildcards: [...hosts].filter(isWildcard) };
}

function touches({ names, wildcards }: NonNullable<Touched>, { routes: { leadsTo } }: MadeVirtualHost): boolean {
  if (names.size === 0) return false;
  return leadsTo.some((host) => names.has(host) || wildcards.some((one) => isHostWithin(host, one)));
}

function makeAll(before: Made | undefined, around: Surroundings): Made {
  const { selection, scope, shape, push, reach } = around;
  const { egress } = selection;
  const { services } = scope;
  const rules = push.destinationRuleRevision;
  const groups = serviceGroups(egress.services, selection, shape, push);
  const byHost = oldestByHost(egress.virtualServices);
  const over = virtualServicesOver(groups, byHost);
  const aliases = aliasesOf(egress, reach);
  const touched = before && touchedSince(before, services, rules);
  const old = touched === undefined ? undefined : before;
  const oldPlaces =
    old === undefined || old.groups === groups ? undefined : new Map(old.groups.map((group, place) => [group, place]));
  const isKept = (one: MadeVirtualHost, now: ResolvedVirtualService | undefined): boolean =>
    one.over === now && !touches(touched!, one);
  const ofGroups = groups.map((group, place) => {
    // Which names stand for a service is for rules and services to say: those few are asked each time.
    const names = aliases.get(group.service.hostname);
    if (names !== undefined) return ofGroupWithNames(group, over[place], names, byHost, around);
    const was = old?.ofGroups[oldPlaces === undefined ? place : (oldPlaces.get(group) ?? -1)];
    if (was !== undefined && !isList(was) && isKept(was, over[place])) return was;
    return makeVirtualHost(wantedOf(group, selection, over[place], []), around);
  });
  const ofUnknown = new Map<string, MadeVirtualHost>();
  for (const { hostname, port, over } of unknownHosts(selection, groups, byHost, scope)) {
    const was = old?.ofUnknown.get(hostname);
    // Which port it is served on is for services to say.
    const isSame = was !== undefined && old?.services === services && old.groups === groups && isKept(was, over);
    const wanted: Wanted = { hostname, port, listenerPort: port, aliasServices: [], over };
    ofUnknown.set(hostname, isSame ? was : makeVirtualHost(wanted, around));
  }
  return { groups, ofGroups, ofUnknown, services, rules };
}

function wantedOf(
  group: ServiceGroup,
  { listenerPort }: RouteSelection,
  over: ResolvedVirtualService | undefined,
  aliasServices: readonly Service[],
): Wanted {
  const { service, port } = group;
  return {
    hostname: service.hostname,
    group,
    port: port.number,
    listenerPort: listenerPort || port.number,
    servicePort: port,
    aliasServices,
    over,
  };
}

/** The service's own virtual host has the names that lead to the same; each of the others has one of its own. */
function ofGroupWithNames(
  group: ServiceGroup,
  over: ResolvedVirtualService | undefined,
  aliases: readonly Service[],
  byHost: ByHost,
  around: Surroundings,
): readonly MadeVirtualHost[] {
  const names = aliases.map((alias) => nameOf(alias, over, byHost, around.reach));
  const same = names.filter(({ isOwn }) => !isOwn).map(({ alias }) => alias);
  const wanted = wantedOf(group, around.selection, over, same);
  const own = names.filter(({ isOwn }) => isOwn);
  return [
    makeVirtualHost(wanted, around),
    ...own.map(({ alias, over }) =>
      makeVirtualHost({ ...wanted, hostname: alias.hostname, aliasServices: [], alias, over }, around),
    ),
  ];
}

/** What requests to another name of a service are routed by, and whether that is something else than by the service's own. */
function nameOf(alias: Service, ofService: ResolvedVirtualService | undefined, byHost: ByHost, reach: Reach) {
  const { chain, service, clustered } = namedBy(alias.hostname, reach);
  const over = virtualServiceOver(chain, byHost);
  return { alias, over, isOwn: over !== ofService || (over === undefined && clustered !== service) };
}

function isList(made: MadeVirtualHost | readonly MadeVirtualHost[]): made is readonly MadeVirtualHost[] {
  return Array.isArray(made);
}

function inOrder({ ofGroups, ofUnknown }: Made): readonly MadeVirtualHost[] {
  const hosts: MadeVirtualHost[] = [];
  for (const made of ofGroups) {
    if (isList(made)) hosts.push(...made);
    else hosts.push(made);
  }
  hosts.push(...ofUnknown.values());
  return hosts;
}

/** Whether what the ones claim, the others claim as well, so that each gets the same. */
function wantTheSame(before: readonly MadeVirtualHost[], now: readonly MadeVirtualHost[]): boolean {
  return (
    before.length === now.length &&
    now.every((host, place) => {
      const was = before[place]!;
      if (was === host) return true;
      const isThere = (was.part === undefined) === (host.part === undefined);
      return isThere && was.name === host.name && was.domains.text === host.domains.text;
    })
  );
}

function claimedAgain(before: Claimed, hosts: readonly MadeVirtualHost[]): Claimed {
  const parts = hosts.map((host, place) => {
    const was = before.hosts[place]!;
    const part = before.parts[place];
    if (was === host || part === undefined) return part;
    return part === was.part ? host.part : withDomains(host, part.domains);
  });
  return { ...before, hosts, parts };
}

function claim(hosts: readonly MadeVirtualHost[], sorts: boolean): Claimed {
  const claimed = new Set<string>();
  let takesAll = false;
  const parts = hosts.map((host) => {
    if (host.part === undefined) return undefined;
    const wanted = host.domains.all;
    const free = wanted.every((domain) => !claimed.has(domain))
      ? wanted
      : wanted.filter((domain) => !claimed.has(domain));
    if (free.length === 0) return undefined;
    for (const domain of free) claimed.add(domain);
    takesAll ||= free.includes('*');
    return free === wanted ? host.part : withDomains(host, free);
  });
  const places = [...parts.keys()].filter((place) => parts[place] !== undefined);
  if (sorts) places.sort((a, b) => compareText(parts[a]!.name, parts[b]!.name));
  return { hosts, parts, order: Uint32Array.from(places), takesAll };
}

interface UnknownHost {
  readonly hostname: string;
  readonly port: number;
  readonly over: ResolvedVirtualService;
}

interface UnknownHosts {
  readonly services: readonly Service[];
  readonly known: readonly Service[];
  readonly hosts: readonly UnknownHost[];
}

const unknownOf = new WeakMap<readonly ServiceGroup[], WeakMap<ByHost, UnknownHosts>>();

/** The virtual services' hosts that no service has as its name. Namespaces that see the same share the list. */
function unknownHosts(
  selection: RouteSelection,
  groups: readonly ServiceGroup[],
  byHost: ByHost,
  scope: SidecarScope,
): readonly UnknownHost[] {
  if (selection.host !== undefined) return [];
  const ofGroups = unknownOf.get(groups) ?? new WeakMap<ByHost, UnknownHosts>();
  unknownOf.set(groups, ofGroups);
  const { services } = selection.egress;
  let known = ofGroups.get(byHost);
  if (known?.services !== services || known.known !== scope.services) {
    const portOf = portOfUnknown(selection, groups, scope);
    const hosts = [...byHost].flatMap(([hostname, over]) => {
      const port = portOf(hostname);
      return port === undefined ? [] : [{ hostname, port, over }];
    });
    known = { services, known: scope.services, hosts };
    ofGroups.set(byHost, known);
  }
  return known.hosts;
}

/**
 * The port on which a virtual service's host is served that no service has as its name: a name under a wildcard
 * service has that one's port; a name that no service covers has port 80; a wildcard over services has none, because
 * they have their own virtual hosts.
 */
function portOfUnknown(
  selection: RouteSelection,
  groups: readonly ServiceGroup[],
  scope: SidecarScope,
): (hostname: string) => number | undefined {
  const { services } = selection.egress;
  const registered = namesOf(services, scope);
  const wildcards = groups.filter(({ service }) => isWildcard(service.hostname));
  const onUnknownPort = selection.port === undefined || selection.port === portOfUnknownHosts;
  return (hostname) => {
    if (registered.has(hostname)) return undefined;
    const wider = wildcards.find(({ service }) => isHostWithin(hostname, service.hostname));
    if (wider !== undefined) return wider.port.number;
    // Only a wildcard can have other names within it.
    if (isWildcard(hostname) && services.some((service) => isHostWithin(service.hostname, hostname))) return undefined;
    return onUnknownPort ? portOfUnknownHosts : undefined;
  };
}

type Names = ReadonlySet<string>;
const namesOfServices = new WeakMap<readonly Service[], WeakMap<readonly Service[], Names>>();

/** Names that stand for something in the mesh: what stands for nothing is nobody's. */
function namesOf(services: readonly Service[], scope: SidecarScope): Names {
  const known = namesOfServices.get(services) ?? new WeakMap<readonly Service[], Names>();
  namesOfServices.set(services, known);
  let names = known.get(scope.services);
  if (names === undefined) {
    const behind = (service: Service) => serviceBehind(service, (host) => scope.serviceByHostname(host));
    const standing = services.filter((service) => !isAlias(service) || behind(service) !== undefined);
    names = new Set(standing.map(({ hostname }) => hostname));
    known.set(scope.services, names);
  }
  return names;
}
