/**
 * The virtual hosts of one sidecar route configuration, in order (§8.5). The next plan is made from the last one: what
 * nothing touched is taken over without being asked for, so a change costs what it touches and one look at each host.
 */

import { listDiff } from '../../model/collections/list-diff.ts';
import { onceFor, onceForPair } from '../../model/collections/once-for.ts';
import { sameItems } from '../../model/collections/same-items.ts';
import { setBounded } from '../../model/collections/set-bounded.ts';
import { type ConfigKey, compareText } from '../../model/config/config.ts';
import { isHostWithin, isPartialWildcard, isWildcard, keysAround, widerHosts } from '../../model/fields/hostname.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import type { RuleRevision } from '../../model/push-context/rule-revision.ts';
import type { SidecarScope } from '../../model/push-context/sidecar-scope.ts';
import type { Service } from '../../model/services/service.ts';
import { isAlias, serviceBehind } from '../../model/services/service-alias.ts';
import { atOnce } from '../../runtime/turns.ts';
import { inBlocks, type PartBlock, sharedBlock, sharedList } from '../messages/part-block.ts';
import type { AheadPart, Encodable } from '../messages/resource.ts';
import { commonShapes } from '../sharing/common-shape.ts';
import { differingHosts } from '../sharing/differing-hosts.ts';
import { aliasesOf, namedBy, virtualServiceOver } from '../traffic/alias.ts';
import type { Reach } from '../traffic/reach.ts';
import { doubtfulPlaces, hostPlacesOf, namedPlaces, placesLeadingTo } from './host-places.ts';
import { type ServiceGroup, serviceGroups } from './service-groups.ts';
import {
  isCalledTheSame,
  isSameFor,
  type MadeVirtualHost,
  makeVirtualHost,
  type RouteSelection,
  type Surroundings,
  type Wanted,
  withDomains,
} from './sidecar-virtual-hosts.ts';
import type { VirtualHostPart } from './virtual-host-part.ts';
import { type ByHost, type ClientRules, clientRules, virtualServicesOver } from './virtual-services-by-host.ts';

export interface RoutePlan {
  /** Blocks of virtual hosts sorted by name: the very same list for the same virtual hosts. */
  readonly blocks: readonly PartBlock<VirtualHostPart>[];
  /** What all parts are made from. */
  readonly routesDependOn: () => readonly ConfigKey[];
  /** One of the virtual hosts takes whatever no other does. */
  readonly takesAll: boolean;
  /** Nothing: whoever looks it up brings all that it depends on, and a new one comes in its place. */
  readonly dependsOn: readonly ConfigKey[];
  readonly made: Made;
  readonly claimed: Claimed;
}

/** What was made, and from what. */
interface Made {
  readonly groups: readonly ServiceGroup[];
  /** Virtual hosts of each group; several where names of it have routes of their own. */
  readonly ofGroups: readonly (MadeVirtualHost | readonly MadeVirtualHost[])[];
  /** Virtual hosts of names that no service has. */
  readonly ofUnknown: ReadonlyMap<string, MadeVirtualHost>;
  /** All of them, in the order in which they claim domains: the first to want one has it. */
  readonly hosts: readonly MadeVirtualHost[];
  /** Places in {@link groups} of those of which services are another name: what they have is a list in {@link ofGroups}. */
  readonly named: readonly number[];
  readonly over: readonly (ResolvedVirtualService | undefined)[];
  readonly services: readonly Service[];
  readonly rules: RuleRevision;
  /** Places in {@link hosts} of those that are others than in the plan before; undefined: any may be. */
  readonly changed: readonly number[] | undefined;
}

/** Which virtual host has which domains. */
interface Claimed {
  /** Virtual hosts with the domains that were left for them; undefined for those that got none. */
  readonly parts: readonly (VirtualHostPart | undefined)[];
  /** Place of each part when all are sorted by name. */
  readonly sorted: Int32Array;
  readonly blocks: readonly PartBlock<VirtualHostPart>[];
  readonly takesAll: boolean;
  /** No two hosts want one domain. */
  readonly allHaveTheirs: boolean;
}

/** Number of `virtual_hosts` in a RouteConfiguration. */
export const virtualHostsField = 2;

/** Host names that no registry knows are served on this port alone. */
const portOfUnknownHosts = 80;

/** @param key what of the client the plan is for, and for which configuration */
export function routePlan(key: string, around: Surroundings): RoutePlan {
  const make = (before: RoutePlan | undefined): RoutePlan => nextPlan(before, around);
  // A plan of one host is not remembered: there is no end of names that somebody may ask for.
  return around.selection.host === undefined ? recalled(key, around, make) : make(undefined);
}

/**
 * Makes a plan that {@link routePlan} then has, a virtual host at a time: for many hosts it takes long. Clients that come
 * together find no plan of others to go by: the first makes one, and the others go on with that before they make theirs.
 *
 * @returns what there is to encode of each
 */
export function* routePlanAhead(key: string, around: Surroundings): Generator<AheadPart | undefined> {
  if (modelFor(around) === undefined) {
    const firsts = firstPlans(around.push);
    const model = modelKey(around);
    const first = firsts.get(model);
    if (first === undefined) {
      const own = planAhead(key, around);
      setBounded(firsts, model, own, maxModels);
      yield* restOf(own);
      return;
    }
    try {
      yield* restOf(first);
    } catch {
      // Those that it is for meet it again, and are told.
    }
  }
  yield* planAhead(key, around);
}

type PlanAhead = Generator<AheadPart | undefined, void>;

/** By {@link modelKey} the plan that was begun first of a context: whoever wants one like it goes on with it, in turns. */
const firstPlans = onceFor((_: PushContext) => new Map<string, PlanAhead>());

/** What nobody has taken yet of what several take from. */
function* restOf(shared: PlanAhead): PlanAhead {
  for (let next = shared.next(); !next.done; next = shared.next()) yield next.value;
}

function* planAhead(key: string, around: Surroundings): PlanAhead {
  const others = modelFor(around);
  const own = around.memory.latest('RDS', planKey(key)) as RoutePlan | undefined;
  const model = nearerModel(others, own, around);
  const start = model?.plan ?? own;
  const made = yield* makingAll(start?.made, around, model);
  const plan = yield* planningWith(made, start, around);
  yield* recalled(key, around, (before) => (before === own ? asModel(plan, others, around) : nextPlan(before, around)))
    .blocks;
}

const planKey = (key: string): string => `plan ${key}`;

function recalled(
  key: string,
  { selection, scope, push, memory }: Surroundings,
  make: (before: RoutePlan | undefined) => RoutePlan,
): RoutePlan {
  const { services, virtualServices } = selection.egress;
  const inputs = [services, scope.services, virtualServices, push.destinationRuleRevision, push.mesh];
  return memory.recall('RDS', planKey(key), inputs, make);
}

/** The plan of any client that has the same services under the same names: of most virtual hosts all have the very same. */
interface Model {
  readonly plan: RoutePlan;
  readonly mesh: PushContext['mesh'];
  /** Hosts that mean something else to its client than to everybody; undefined: too many. */
  readonly differing: ReadonlySet<string> | undefined;
  /** The search domain of its client. */
  readonly dnsDomain: string;
}

const models = onceFor((_: readonly ServiceGroup[]) => new Map<string, Model>());
/** The one made last of a context, for clients whose services nobody else has: what they have besides is little. */
const latest = onceFor((_: PushContext) => new Map<string, Model>());
/** Configurations of the same services that differ in more than the client. */
const maxModels = 16;

function modelKey({ selection, push }: Surroundings): string {
  return `${selection.port} ${selection.listenerPort} ${push.features.absoluteNames}`;
}

function modelFor(around: Surroundings): Model | undefined {
  const { push } = around;
  const key = modelKey(around);
  const model = models(groupsOf(around)).get(key);
  // Settings are in all routes.
  return model?.mesh === push.mesh ? model : latest(push).get(key);
}

/** Of its groups a plan is the model where there is none, or one of other rules. */
function asModel(plan: RoutePlan, others: Model | undefined, around: Surroundings): RoutePlan {
  const { push, shape } = around;
  const key = modelKey(around);
  const { dnsDomain } = shape;
  const model = { plan, mesh: push.mesh, differing: differingFromEverybody(around), dnsDomain };
  if (others === undefined || differs(others.plan.made, plan.made)) {
    setBounded(models(groupsOf(around)), key, model, maxModels);
  }
  setBounded(latest(push), key, model, maxModels);
  return plan;
}

function nextPlan(own: RoutePlan | undefined, around: Surroundings): RoutePlan {
  if (around.selection.host !== undefined) return planFrom(undefined, around);
  const others = modelFor(around);
  const model = nearerModel(others, own, around);
  return asModel(planFrom(model?.plan ?? own, around, model), others, around);
}

/** The plan of another client that the next one is made from; undefined: it is made from the client's own. */
function nearerModel(others: Model | undefined, own: RoutePlan | undefined, around: Surroundings): Model | undefined {
  return own === undefined || isNearer(others, own, around) ? others : undefined;
}

/**
 * Whether another client's plan is of the services of now, and the own one is not: what came and went was worked out once, and
 * the own plan would have to be made as a whole.
 */
function isNearer(others: Model | undefined, own: RoutePlan, around: Surroundings): others is Model {
  const groups = groupsOf(around);
  return others !== undefined && others.plan.made.groups === groups && own.made.groups !== groups;
}

type SameAs = (made: MadeVirtualHost, hostname: string) => boolean;

function differingFromEverybody({ shape, push }: Surroundings): ReadonlySet<string> | undefined {
  const [everybody] = commonShapes(shape, push);
  return everybody && differingHosts(shape, everybody, push);
}

/** What a client may have of a plan that was made for another one. */
interface Likeness {
  /** Whether it gets what was made, of a host that nothing touched since: few are asked what they lead to. */
  readonly isSame: SameAs;
  /** Hosts that may mean something else to the one than to the other; undefined: any may. */
  readonly differing: ReadonlySet<string> | undefined;
  /** Their search domains. */
  readonly domains: readonly [string, string];
}

function likenessOf(others: Model, around: Surroundings): Likeness {
  const theirs = others.differing;
  const own = differingFromEverybody(around);
  const domains = [others.dnsDomain, around.shape.dnsDomain] as const;
  if (own === undefined || theirs === undefined) {
    return { isSame: (made, hostname) => isSameFor(made, hostname, around), differing: undefined, domains };
  }
  const differing = new Set([...own, ...theirs]);
  const isSame: SameAs = (made, hostname) =>
    made.routes.leadsTo.some((host) => differing.has(host))
      ? isSameFor(made, hostname, around)
      : isCalledTheSame(made, hostname, around);
  return { isSame, differing, domains };
}

/** What comes later is less like it. */
function differs(one: Made, other: Made): boolean {
  return (
    one.groups !== other.groups ||
    one.over !== other.over ||
    one.rules !== other.rules ||
    one.services !== other.services
  );
}

/** @param others the plan before is that of another client */
function planFrom(before: RoutePlan | undefined, around: Surroundings, others?: Model): RoutePlan {
  return planWith(makeAll(before?.made, around, others), before, around);
}

function planWith(made: Made, before: RoutePlan | undefined, around: Surroundings): RoutePlan {
  return atOnce(planningWith(made, before, around));
}

/** A few hundred hosts at a time. */
function* planningWith(
  made: Made,
  before: RoutePlan | undefined,
  { selection }: Surroundings,
): Generator<undefined, RoutePlan> {
  if (before !== undefined && before.made.hosts === made.hosts) return { ...before, made };
  const { hosts } = made;
  const again = before && claimedAgain(before.claimed, before.made.hosts, made);
  const claimed = again ?? (yield* claiming(hosts, selection.host === undefined));
  const routesDependOn = (): readonly ConfigKey[] => hosts.flatMap(({ routes }) => routes.dependsOn);
  return { blocks: claimed.blocks, routesDependOn, takesAll: claimed.takesAll, dependsOn: [], made, claimed };
}

/** Hosts whose services or rules are not what they were. */
interface Touched {
  readonly names: ReadonlySet<string>;
  readonly wildcards: readonly string[];
}

/** Undefined: any may be. */
function touchedSince(before: Made, services: readonly Service[], rules: RuleRevision): Touched | undefined {
  const hosts = rules.changedSince(before.rules);
  if (hosts === undefined) return undefined;
  const { removed, added } = listDiff(before.services, services);
  const names = new Set([...hosts, ...[...removed, ...added].map(({ hostname }) => hostname)]);
  return { names, wildcards: [...hosts].filter(isWildcard) };
}

function touches({ names, wildcards }: Touched, { routes: { leadsTo } }: MadeVirtualHost): boolean {
  if (names.size === 0) return false;
  return leadsTo.some((host) => names.has(host) || wildcards.some((one) => isHostWithin(host, one)));
}

function groupsOf({ selection, shape, push }: Surroundings): readonly ServiceGroup[] {
  return serviceGroups(selection.egress.services, selection, shape, push);
}

function makeAll(before: Made | undefined, around: Surroundings, others: Model | undefined): Made {
  return atOnce(makingAll(before, around, others));
}

/** Virtual hosts of others that are looked at for each one that is made. */
const looksAtATime = 64;

/** A virtual host at a time. */
function* makingAll(
  before: Made | undefined,
  around: Surroundings,
  others: Model | undefined,
): Generator<Encodable | undefined, Made> {
  const { selection, shape, scope, push, reach } = around;
  const { egress } = selection;
  const { services } = scope;
  const rules = push.destinationRuleRevision;
  // Each of these looks at all services, or all virtual services, for the first who comes with them.
  const groups = groupsOf(around);
  yield undefined;
  const byClient = clientRules(egress.virtualServices, shape);
  yield undefined;
  const over = virtualServicesOver(groups, byClient, selection.listenerPort);
  yield undefined;
  const aliases = aliasesOf(egress, reach);
  yield undefined;
  const unknown = unknownHosts(selection, groups, byClient, scope);
  yield undefined;
  const touched = before && touchedSince(before, services, rules);
  const named = namedPlaces(groups, aliases);
  const inputs: Inputs = { groups, over, unknown, services, rules, named };
  const known = touched === undefined ? undefined : before;
  const likeness = others && likenessOf(others, around);
  const isSame = likeness?.isSame;
  const withNames = (place: number): readonly MadeVirtualHost[] => {
    const group = groups[place]!;
    const byHost = byClient.at(selection.listenerPort || group.port.number);
    return ofGroupWithNames(group, over[place], aliases.get(group.service.hostname)!, byHost, around);
  };
  const again = known && (yield* makingAgain(known, touched!, { ...inputs, withNames }, around, likeness));
  if (again !== undefined) return again;
  const old = known;
  const oldPlaces = old === undefined || old.groups === groups ? undefined : placesOf(old.groups);
  const ofGroups: (MadeVirtualHost | readonly MadeVirtualHost[])[] = [];
  for (const [place, group] of groups.entries()) {
    // Which names stand for a service is for rules and services to say: those few are asked each time.
    const names = aliases.get(group.service.hostname);
    const was = old?.ofGroups[oldPlaces === undefined ? place : (oldPlaces.get(group) ?? -1)];
    if (names !== undefined) {
      ofGroups.push(withNames(place));
      yield undefined;
    } else if (was !== undefined && !isList(was) && isAsBefore(was, group, over[place], touched!, isSame)) {
      ofGroups.push(was);
      if (others !== undefined && place % looksAtATime === 0) yield undefined;
    } else {
      const made = makeVirtualHost(wantedOf(group, selection, over[place], []), around);
      ofGroups.push(made);
      yield made.routes.part;
    }
  }
  const ownBefore = others === undefined ? old : undefined;
  const ofUnknown = new Map<string, MadeVirtualHost>();
  for (const one of unknown) {
    const made = ofUnknownHost(one, ownBefore, touched, inputs, around);
    ofUnknown.set(one.hostname, made);
    // One may have thousands of routes.
    yield made.routes.part;
  }
  const hosts = inOrder({ ofGroups, ofUnknown });
  const areAsBefore = before !== undefined && sameItems(before.hosts, hosts);
  return { ...inputs, ofGroups, ofUnknown, hosts: areAsBefore ? before.hosts : hosts, changed: undefined };
}

interface Inputs extends Pick<Made, 'groups' | 'over' | 'services' | 'rules' | 'named'> {
  readonly unknown: readonly UnknownHost[];
}

/** Places in which the lists have others, found once for all who come from the one to the other. */
const differingPlaces = onceForPair((before: readonly unknown[], now: readonly unknown[]): readonly number[] =>
  now.flatMap((one, place) => (one === before[place] ? [] : [place])),
);

/** Where each group stands, found once for all who come from these. */
const placesOf = onceFor(
  (groups: readonly ServiceGroup[]): ReadonlyMap<ServiceGroup, number> =>
    new Map(groups.map((group, place) => [group, place])),
);

/** With the same services in the same order: a change costs what it touches. Undefined: it has to be made as a whole. */
function* makingAgain(
  before: Made,
  touched: Touched,
  { withNames, ...inputs }: Inputs & { readonly withNames: (place: number) => readonly MadeVirtualHost[] },
  around: Surroundings,
  likeness: Likeness | undefined,
): Generator<Encodable | undefined, Made | undefined> {
  const isOthers = likeness !== undefined;
  const { groups, over, unknown, named } = inputs;
  if (before.groups !== groups || !sameItems(before.named, named)) return undefined;
  if (unknown.length !== before.ofUnknown.size) return undefined;
  const ofUnknown = new Map<string, MadeVirtualHost>();
  const changed: number[] = [];
  let ofGroups: (MadeVirtualHost | readonly MadeVirtualHost[])[] | undefined;
  let hosts: MadeVirtualHost[] | undefined;
  const hostPlaces = hostPlacesOf(before);
  const places: number[] = [];
  for (const place of placesToAsk(before, touched, inputs, likeness)) {
    const was = before.ofGroups[place]!;
    // Which names stand for a service is for rules and services to say: those few are asked each time.
    if (isList(was)) continue;
    if (!isAsBefore(was, groups[place]!, over[place], touched, likeness?.isSame)) places.push(place);
    if (isOthers && place % looksAtATime === 0) yield undefined;
  }
  const change = (place: number, made: MadeVirtualHost): void => {
    if (made === before.hosts[place]) return;
    hosts ??= before.hosts.slice();
    hosts[place] = made;
    changed.push(place);
  };
  for (const place of places) {
    const made = makeVirtualHost(wantedOf(groups[place]!, around.selection, over[place], []), around);
    change(hostPlaces.of(place), made);
    ofGroups ??= before.ofGroups.slice();
    ofGroups[place] = made;
    yield made.routes.part;
  }
  for (const place of named) {
    const all = withNames(place);
    const were = before.ofGroups[place] as readonly MadeVirtualHost[];
    if (all.length !== were.length) return undefined;
    if (sameItems(were, all)) continue;
    for (const [index, made] of all.entries()) change(hostPlaces.of(place) + index, made);
    ofGroups ??= before.ofGroups.slice();
    ofGroups[place] = all;
    if (isOthers) yield all[0]!.routes.part;
  }
  const ofAllGroups = hostPlaces.of(groups.length);
  const oldNames = before.ofUnknown.keys();
  for (const [index, one] of unknown.entries()) {
    if (oldNames.next().value !== one.hostname) return undefined;
    const made = ofUnknownHost(one, isOthers ? undefined : before, touched, inputs, around);
    ofUnknown.set(one.hostname, made);
    change(ofAllGroups + index, made);
    yield made.routes.part;
  }
  return { ...inputs, ofGroups: ofGroups ?? before.ofGroups, ofUnknown, hosts: hosts ?? before.hosts, changed };
}

/** Of all other groups the virtual hosts are as they were, and as another client has them. */
function placesToAsk(before: Made, touched: Touched, inputs: Inputs, likeness: Likeness | undefined): Iterable<number> {
  const { groups, over } = inputs;
  const ruled = differingPlaces(before.over, over);
  if (likeness === undefined) return touched.names.size === 0 ? ruled : ownPlacesToAsk(before, touched, ruled, inputs);
  if (likeness.differing === undefined || touched.wildcards.length > 0) return groups.keys();
  const differing = [...likeness.differing, ...touched.names];
  const doubtful = doubtfulPlaces(before, hostPlacesOf(before).groupOf, { differing, domains: likeness.domains });
  const places = new Set([...ruled, ...doubtful].filter((place) => place < groups.length));
  return [...places].sort((a, b) => a - b);
}

/** With more names it is as well to look at all. */
const mostLookedUp = 64;

/** Those that lead to what was touched are looked up, unless names stand for others. */
function ownPlacesToAsk(
  before: Made,
  { names, wildcards }: Touched,
  ruled: readonly number[],
  { groups, over, services }: Inputs,
): Iterable<number> {
  const haveAliases = aliasesIn(services).length > 0 || aliasesIn(before.services).length > 0;
  if (haveAliases || wildcards.length > 0 || names.size > mostLookedUp) return groups.keys();
  const leadingTo = placesLeadingTo(groups, over);
  const places = new Set([...ruled, ...[...names].flatMap((name) => leadingTo.get(name) ?? [])]);
  return [...places].sort((a, b) => a - b);
}

const aliasesIn = onceFor((services: readonly Service[]) => services.filter(isAlias));

function isKept(one: MadeVirtualHost, now: ResolvedVirtualService | undefined, touched: Touched): boolean {
  return one.over === now && !touches(touched, one);
}

/** @param isSame it was made for another client: what that one got must be what this one gets */
function isAsBefore(
  was: MadeVirtualHost,
  { service }: ServiceGroup,
  over: ResolvedVirtualService | undefined,
  touched: Touched,
  isSame: SameAs | undefined,
): boolean {
  return isKept(was, over, touched) && (isSame === undefined || isSame(was, service.hostname));
}

function ofUnknownHost(
  { hostname, port, over }: UnknownHost,
  before: Made | undefined,
  touched: Touched | undefined,
  { groups, services }: Inputs,
  around: Surroundings,
): MadeVirtualHost {
  const was = before?.ofUnknown.get(hostname);
  // Which port it is served on is for services to say.
  const isSame = before?.services === services && before.groups === groups;
  if (was !== undefined && isSame && isKept(was, over, touched!)) return was;
  return makeVirtualHost({ hostname, port, listenerPort: port, aliasServices: [], over }, around);
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

function inOrder({ ofGroups, ofUnknown }: Pick<Made, 'ofGroups' | 'ofUnknown'>): readonly MadeVirtualHost[] {
  const hosts: MadeVirtualHost[] = [];
  for (const made of ofGroups) {
    if (isList(made)) hosts.push(...made);
    else hosts.push(made);
  }
  hosts.push(...ofUnknown.values());
  return hosts;
}

/** When all claim what those before them did, or nobody else's, each has what it wants; undefined: it takes a look at all. */
function claimedAgain(before: Claimed, was: readonly MadeVirtualHost[], { hosts, changed }: Made): Claimed | undefined {
  if (was.length !== hosts.length) return undefined;
  const places = changed ?? differingPlaces(was, hosts);
  if (!places.every((place) => isInPlaceOf(was[place]!, hosts[place]!))) return undefined;
  const moved = places.filter((place) => was[place]!.domains.text !== hosts[place]!.domains.text);
  if (moved.length > 0 && !(before.allHaveTheirs && areFree(moved, was, hosts))) return undefined;
  const parts = before.parts.slice();
  const byBlock = new ChangedBlocks(before.blocks);
  for (const place of places) {
    const old = parts[place];
    if (old === undefined) continue;
    const host = hosts[place]!;
    const part = old === was[place]!.part ? host.part : withDomains(host, old.domains);
    parts[place] = part;
    byBlock.set(before.sorted[place]!, part);
  }
  return { ...before, parts, blocks: byBlock.blocks() };
}

function isInPlaceOf(was: MadeVirtualHost, host: MadeVirtualHost): boolean {
  return was.name === host.name;
}

/** Which host has which domain, where no two want one. */
const ownersOf = onceFor((hosts: readonly MadeVirtualHost[]): ReadonlyMap<string, number> => {
  const owners = new Map<string, number>();
  for (const [place, { domains }] of hosts.entries()) for (const domain of domains.all) owners.set(domain, place);
  return owners;
});

/** Whether the domains that these hosts want now are nobody else's; who takes all is for all to say. */
function areFree(
  moved: readonly number[],
  was: readonly MadeVirtualHost[],
  hosts: readonly MadeVirtualHost[],
): boolean {
  const owners = ownersOf(was);
  const givers = new Set(moved);
  const taken = new Set<string>();
  return moved.every((place) => {
    const { all } = hosts[place]!.domains;
    if (all.includes('*') || was[place]!.domains.all.includes('*')) return false;
    return all.every((domain) => {
      const owner = owners.get(domain);
      if ((owner !== undefined && !givers.has(owner)) || taken.has(domain)) return false;
      taken.add(domain);
      return true;
    });
  });
}

/** Blocks of which some parts come to be others of the same names: those blocks alone are put together again. */
class ChangedBlocks {
  readonly #before: readonly PartBlock<VirtualHostPart>[];
  readonly #changed = new Map<number, VirtualHostPart[]>();

  constructor(before: readonly PartBlock<VirtualHostPart>[]) {
    this.#before = before;
  }

  /** @param place among the parts of all blocks */
  set(place: number, part: VirtualHostPart): void {
    let index = 0;
    let offset = place;
    while (offset >= this.#before[index]!.parts.length) offset -= this.#before[index++]!.parts.length;
    const parts = this.#changed.get(index) ?? [...this.#before[index]!.parts];
    parts[offset] = part;
    this.#changed.set(index, parts);
  }

  blocks(): readonly PartBlock<VirtualHostPart>[] {
    const blocks = [...this.#before];
    for (const [index, parts] of this.#changed) blocks[index] = sharedBlock(virtualHostsField, parts);
    return sharedList(blocks);
  }
}

/** Hosts that claim their domains at a time. */
const claimsAtATime = 256;

function* claiming(hosts: readonly MadeVirtualHost[], sorts: boolean): Generator<undefined, Claimed> {
  const claimed = new Set<string>();
  let takesAll = false;
  let allHaveTheirs = true;
  const claim = (host: MadeVirtualHost): VirtualHostPart | undefined => {
    const wanted = host.domains.all;
    const free = wanted.every((domain) => !claimed.has(domain))
      ? wanted
      : wanted.filter((domain) => !claimed.has(domain));
    allHaveTheirs &&= free === wanted;
    if (free.length === 0) return undefined;
    for (const domain of free) claimed.add(domain);
    takesAll ||= free.includes('*');
    return free === wanted ? host.part : withDomains(host, free);
  };
  const parts: (VirtualHostPart | undefined)[] = [];
  for (const [place, host] of hosts.entries()) {
    parts.push(claim(host));
    if (place % claimsAtATime === claimsAtATime - 1) yield undefined;
  }
  const places = [...parts.keys()].filter((place) => parts[place] !== undefined);
  if (sorts) places.sort((a, b) => compareText(parts[a]!.name, parts[b]!.name));
  const sorted = new Int32Array(parts.length);
  for (const [at, place] of places.entries()) sorted[place] = at;
  yield undefined;
  const blocks = sharedList(
    inBlocks(
      virtualHostsField,
      places.map((place) => parts[place]!),
    ),
  );
  return { parts, sorted, blocks, takesAll, allHaveTheirs };
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
  rules: ClientRules,
  scope: SidecarScope,
): readonly UnknownHost[] {
  if (selection.host !== undefined) return [];
  const make = (): readonly UnknownHost[] => {
    const portOf = portOfUnknown(selection, groups, scope);
    return [...rules.hosts].flatMap((hostname) => {
      const port = portOf(hostname);
      const over = port === undefined ? undefined : rules.at(port).get(hostname);
      return port === undefined || over === undefined ? [] : [{ hostname, port, over }];
    });
  };
  // Of one port all virtual services are those of that port.
  if (selection.port === undefined && !rules.sameAtAllPorts) return make();
  const byHost = rules.at(selection.listenerPort);
  const ofGroups = unknownOf.get(groups) ?? new WeakMap<ByHost, UnknownHosts>();
  unknownOf.set(groups, ofGroups);
  const { services } = selection.egress;
  let known = ofGroups.get(byHost);
  if (known?.services !== services || known.known !== scope.services) {
    known = { services, known: scope.services, hosts: make() };
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
  const wildcards = new Map<string, number>();
  for (const [place, { service }] of groups.entries()) {
    if (isWildcard(service.hostname) && !wildcards.has(service.hostname)) wildcards.set(service.hostname, place);
  }
  const isOverServices = wildcardsOver(services);
  const onUnknownPort = selection.port === undefined || selection.port === portOfUnknownHosts;
  return (hostname) => {
    if (registered.has(hostname)) return undefined;
    const wider = wildcards.size === 0 ? [] : [...keysAround(hostname, wildcards)].map((host) => wildcards.get(host)!);
    if (wider.length > 0) return groups[Math.min(...wider)]!.port.number;
    // Only a wildcard can have other names within it.
    if (isWildcard(hostname) && isOverServices(hostname)) return undefined;
    return onUnknownPort ? portOfUnknownHosts : undefined;
  };
}

/** Whether any service lies within a wildcard. There may be as many wildcards as services. */
function wildcardsOver(services: readonly Service[]): (wildcard: string) => boolean {
  let wider: Names | undefined;
  return (wildcard) => {
    if (isPartialWildcard(wildcard)) return services.some(({ hostname }) => isHostWithin(hostname, wildcard));
    wider ??= new Set(services.flatMap(({ hostname }) => [...widerHosts(hostname)]));
    return wider.has(wildcard);
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
