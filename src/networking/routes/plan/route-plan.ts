/**
 * The virtual hosts of one sidecar route configuration, in order (§8.5). The next plan is made from the last one: what
 * nothing touched is taken over without being asked for, so a change costs what it touches and one look at each host.
 */

import { listDiff } from '../../../model/collections/list-diff.ts';
import { onceFor } from '../../../model/collections/once-for.ts';
import { sameItems } from '../../../model/collections/same-items.ts';
import { setBounded } from '../../../model/collections/set-bounded.ts';
import type { ConfigKey } from '../../../model/config/config.ts';
import { isHostWithin, isWildcard } from '../../../model/fields/hostname.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import type { RuleRevision } from '../../../model/push-context/rule-revision.ts';
import type { Service } from '../../../model/services/service.ts';
import { isAlias } from '../../../model/services/service-alias.ts';
import { atOnce } from '../../../runtime/turns.ts';
import type { AheadPart, Encodable } from '../../messages/resource.ts';
import { aliasesOf } from '../../traffic/alias.ts';
import { claimedAgain, claiming } from './claimed-domains.ts';
import { doubtfulPlaces, hostPlacesOf, namedPlaces, placesLeadingTo } from './host-places.ts';
import { ofGroupWithNames, wantedOf } from './named-hosts.ts';
import {
  differingFromEverybody,
  groupsOf,
  type Likeness,
  latest,
  likenessOf,
  type Model,
  maxModels,
  modelFor,
  modelKey,
  models,
  type SameAs,
} from './plan-models.ts';
import { differingPlaces, type Made, type RoutePlan } from './planned-routes.ts';
import type { ServiceGroup } from './service-groups.ts';
import { type MadeVirtualHost, makeVirtualHost, type Surroundings } from './sidecar-virtual-hosts.ts';
import { type UnknownHost, unknownHosts } from './unknown-hosts.ts';
import { clientRules, virtualServicesOver } from './virtual-services-by-host.ts';

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
