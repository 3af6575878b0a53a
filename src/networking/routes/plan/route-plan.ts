import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
import { sameItems } from '../../../model/collections/same-items.ts';
import { setBounded } from '../../../model/collections/set-bounded.ts';
import type { ConfigKey } from '../../../model/config/config.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import type { Service } from '../../../model/services/service.ts';
import { isAlias } from '../../../model/services/service-alias.ts';
import { runToEnd } from '../../../runtime/turns.ts';
import type { Encodable, PartToEncode } from '../../messages/resource.ts';
import { aliasesOf } from '../../traffic/alias.ts';
import { type ChangedHosts, changedSince, isHostUnchanged } from './changed-hosts.ts';
import { assignDomainsInSteps, reassignDomains } from './claimed-domains.ts';
import {
  aliasedGroupIndexesOf,
  groupHostMappingOf,
  groupIndexesByDestination,
  groupIndexesToRecheck,
} from './host-places.ts';
import { hostsOfAliasedGroup, virtualHostSpecOf } from './named-hosts.ts';
import {
  groupsOf,
  hostsResolvedDifferently,
  type IsReusable,
  latestModelFor,
  latestModels,
  type ModelSimilarity,
  maxModels,
  modelKey,
  modelsOfGroups,
  type PlanModel,
  similarityOf,
} from './plan-models.ts';
import { differingIndexes, type PlannedHosts, type RoutePlan } from './planned-routes.ts';
import type { ServiceGroup } from './service-groups.ts';
import { buildVirtualHost, type CachedVirtualHost, type PlanContext } from './sidecar-virtual-hosts.ts';
import { type UnknownHost, unknownHosts } from './unknown-hosts.ts';
import { virtualServicesForClient, virtualServicesOfGroups } from './virtual-services-by-host.ts';

/** @param key configuration name, and client properties on which the plan depends */
export function routePlan(key: string, context: PlanContext): RoutePlan {
  const build = (previous: RoutePlan | undefined): RoutePlan => nextPlan(previous, context);
  // Plans of a single host are not cached, because clients may request any number of names.
  return context.selection.host === undefined ? cachedPlanOrBuild(key, context, build) : build(undefined);
}

/** Precomputes a plan one virtual host at a time. Clients that connect simultaneously share the plan of the first one. */
export function* precomputeRoutePlan(key: string, context: PlanContext): Generator<PartToEncode | undefined> {
  if (latestModelFor(context) === undefined) {
    const firstPlanByKey = firstPlans(context.push);
    const model = modelKey(context);
    const firstPlan = firstPlanByKey.get(model);
    if (firstPlan === undefined) {
      const ownPlan = precomputePlan(key, context);
      setBounded(firstPlanByKey, model, ownPlan, maxModels);
      yield* remainingStepsOf(ownPlan);
      return;
    }
    try {
      yield* remainingStepsOf(firstPlan);
    } catch {
      // Each client repeats the failed step for its own plan, and then reports the error.
    }
  }
  yield* precomputePlan(key, context);
}

type PlanComputation = Generator<PartToEncode | undefined, void>;

/** The first plan in progress of a push context, by {@link modelKey}. Several clients continue it together. */
const firstPlans = memoizeByObject((_: PushContext) => new Map<string, PlanComputation>());

function* remainingStepsOf(sharedComputation: PlanComputation): PlanComputation {
  for (let next = sharedComputation.next(); !next.done; next = sharedComputation.next()) yield next.value;
}

function* precomputePlan(key: string, context: PlanContext): PlanComputation {
  const otherModel = latestModelFor(context);
  const ownPlan = context.cache.latestValue('RDS', planKey(key)) as RoutePlan | undefined;
  const model = closerModel(otherModel, ownPlan, context);
  const start = model?.plan ?? ownPlan;
  const plannedHosts = yield* buildHostsInSteps(start?.plannedHosts, context, model);
  const plan = yield* withDomainsInSteps(plannedHosts, start, context);
  yield* cachedPlanOrBuild(key, context, (previous) =>
    previous === ownPlan ? storeModel(plan, otherModel, context) : nextPlan(previous, context),
  ).blocks;
}

const planKey = (key: string): string => `plan ${key}`;

function cachedPlanOrBuild(
  key: string,
  { selection, scope, push, cache }: PlanContext,
  build: (previous: RoutePlan | undefined) => RoutePlan,
): RoutePlan {
  const { services, virtualServices } = selection.egress;
  const inputs = [services, scope.services, virtualServices, push.destinationRuleRevision, push.mesh];
  return cache.getOrBuild('RDS', planKey(key), inputs, build);
}

/** Stores a plan as the latest model, and as the model of its groups unless they have one with the same inputs. */
function storeModel(plan: RoutePlan, otherModel: PlanModel | undefined, context: PlanContext): RoutePlan {
  const { push, shape } = context;
  const key = modelKey(context);
  const { dnsDomain } = shape;
  const model = { plan, mesh: push.mesh, differingHosts: hostsResolvedDifferently(context), dnsDomain };
  if (otherModel === undefined || haveDifferentInputs(otherModel.plan.plannedHosts, plan.plannedHosts)) {
    setBounded(modelsOfGroups(groupsOf(context)), key, model, maxModels);
  }
  setBounded(latestModels(push), key, model, maxModels);
  return plan;
}

function nextPlan(ownPlan: RoutePlan | undefined, context: PlanContext): RoutePlan {
  if (context.selection.host !== undefined) return buildPlan(undefined, context);
  const otherModel = latestModelFor(context);
  const model = closerModel(otherModel, ownPlan, context);
  return storeModel(buildPlan(model?.plan ?? ownPlan, context, model), otherModel, context);
}

/** Returns `undefined` if the client's previous plan is more similar. */
function closerModel(
  otherModel: PlanModel | undefined,
  ownPlan: RoutePlan | undefined,
  context: PlanContext,
): PlanModel | undefined {
  return ownPlan === undefined || isCloserModel(otherModel, ownPlan, context) ? otherModel : undefined;
}

/** Whether only the model has the current services. A plan with other services would be rebuilt completely. */
function isCloserModel(
  otherModel: PlanModel | undefined,
  ownPlan: RoutePlan,
  context: PlanContext,
): otherModel is PlanModel {
  const groups = groupsOf(context);
  return (
    otherModel !== undefined && otherModel.plan.plannedHosts.groups === groups && ownPlan.plannedHosts.groups !== groups
  );
}

function haveDifferentInputs(hosts: PlannedHosts, otherHosts: PlannedHosts): boolean {
  return (
    hosts.groups !== otherHosts.groups ||
    hosts.virtualServices !== otherHosts.virtualServices ||
    hosts.destinationRuleRevision !== otherHosts.destinationRuleRevision ||
    hosts.services !== otherHosts.services
  );
}

/** @param otherModel set if `previous` is another client's plan */
function buildPlan(previous: RoutePlan | undefined, context: PlanContext, otherModel?: PlanModel): RoutePlan {
  return withDomains(buildHosts(previous?.plannedHosts, context, otherModel), previous, context);
}

function withDomains(plannedHosts: PlannedHosts, previous: RoutePlan | undefined, context: PlanContext): RoutePlan {
  return runToEnd(withDomainsInSteps(plannedHosts, previous, context));
}

function* withDomainsInSteps(
  plannedHosts: PlannedHosts,
  previous: RoutePlan | undefined,
  { selection }: PlanContext,
): Generator<undefined, RoutePlan> {
  if (previous !== undefined && previous.plannedHosts.hosts === plannedHosts.hosts)
    return { ...previous, plannedHosts };
  const { hosts } = plannedHosts;
  const reassignedDomains =
    previous && reassignDomains(previous.domainAssignment, previous.plannedHosts.hosts, plannedHosts);
  const domainAssignment = reassignedDomains ?? (yield* assignDomainsInSteps(hosts, selection.host === undefined));
  const routesDependOn = (): readonly ConfigKey[] => hosts.flatMap(({ routes }) => routes.dependsOn);
  return {
    blocks: domainAssignment.blocks,
    routeDependencies: routesDependOn,
    hasCatchAll: domainAssignment.hasCatchAll,
    dependsOn: [],
    plannedHosts,
    domainAssignment,
  };
}

function buildHosts(
  previous: PlannedHosts | undefined,
  context: PlanContext,
  otherModel: PlanModel | undefined,
): PlannedHosts {
  return runToEnd(buildHostsInSteps(previous, context, otherModel));
}

/** Number of virtual hosts of another client that are checked between two yields. */
const checksPerStep = 64;

function* buildHostsInSteps(
  previous: PlannedHosts | undefined,
  context: PlanContext,
  otherModel: PlanModel | undefined,
): Generator<Encodable | undefined, PlannedHosts> {
  const { selection, shape, scope, push, reach } = context;
  const { egress } = selection;
  const { services } = scope;
  const destinationRuleRevision = push.destinationRuleRevision;
  // Each of the following steps processes all services or VirtualServices, but only for the first client with these lists.
  const groups = groupsOf(context);
  yield undefined;
  const virtualServicesOfClient = virtualServicesForClient(egress.virtualServices, shape);
  yield undefined;
  const virtualServices = virtualServicesOfGroups(groups, virtualServicesOfClient, selection.listenerPort);
  yield undefined;
  const aliases = aliasesOf(egress, reach);
  yield undefined;
  const unknownNames = unknownHosts(selection, groups, virtualServicesOfClient, scope);
  yield undefined;
  const changedHosts = previous && changedSince(previous, services, destinationRuleRevision);
  const aliasedGroupIndexes = aliasedGroupIndexesOf(groups, aliases);
  const inputs: PlanInputs = {
    ...{ groups, virtualServices, unknownNames },
    ...{ services, destinationRuleRevision, aliasedPlaces: aliasedGroupIndexes },
  };
  const reusablePlan = changedHosts === undefined ? undefined : previous;
  const similarity = otherModel && similarityOf(otherModel, context);
  const isReusable = similarity?.isReusable;
  const hostsWithAliases = (index: number): readonly CachedVirtualHost[] => {
    const group = groups[index]!;
    const byHost = virtualServicesOfClient.forPort(selection.listenerPort || group.port.number);
    return hostsOfAliasedGroup(group, virtualServices[index], aliases.get(group.service.hostname)!, byHost, context);
  };
  const rebuiltHosts =
    reusablePlan &&
    (yield* rebuildChangedInSteps(reusablePlan, changedHosts!, { ...inputs, hostsWithAliases }, context, similarity));
  if (rebuiltHosts !== undefined) return rebuiltHosts;
  const previousIndexByGroup =
    reusablePlan === undefined || reusablePlan.groups === groups ? undefined : indexByGroup(reusablePlan.groups);
  const hostsByGroup: (CachedVirtualHost | readonly CachedVirtualHost[])[] = [];
  for (const [groupIndex, group] of groups.entries()) {
    // Groups with aliases are always checked, because aliases depend on services and VirtualServices.
    const names = aliases.get(group.service.hostname);
    const previousHost =
      reusablePlan?.hostsByGroup[
        previousIndexByGroup === undefined ? groupIndex : (previousIndexByGroup.get(group) ?? -1)
      ];
    if (names !== undefined) {
      hostsByGroup.push(hostsWithAliases(groupIndex));
      yield undefined;
    } else if (
      previousHost !== undefined &&
      !isList(previousHost) &&
      isReusableHost(previousHost, group, virtualServices[groupIndex], changedHosts!, isReusable)
    ) {
      hostsByGroup.push(previousHost);
      if (otherModel !== undefined && groupIndex % checksPerStep === 0) yield undefined;
    } else {
      const host = buildVirtualHost(virtualHostSpecOf(group, selection, virtualServices[groupIndex], []), context);
      hostsByGroup.push(host);
      yield host.routes.routePart;
    }
  }
  const ownPrevious = otherModel === undefined ? reusablePlan : undefined;
  const hostsByUnknownName = new Map<string, CachedVirtualHost>();
  for (const unknownName of unknownNames) {
    const host = hostOfUnknownName(unknownName, ownPrevious, changedHosts, inputs, context);
    hostsByUnknownName.set(unknownName.hostname, host);
    // A virtual host may have thousands of routes.
    yield host.routes.routePart;
  }
  const hosts = sortByClaimPriority({ hostsByGroup, hostsByUnknownName });
  const areHostsUnchanged = previous !== undefined && sameItems(previous.hosts, hosts);
  return {
    ...inputs,
    hostsByGroup,
    hostsByUnknownName,
    hosts: areHostsUnchanged ? previous.hosts : hosts,
    changedPlaces: undefined,
  };
}

interface PlanInputs
  extends Pick<PlannedHosts, 'groups' | 'virtualServices' | 'services' | 'destinationRuleRevision' | 'aliasedPlaces'> {
  readonly unknownNames: readonly UnknownHost[];
}

const indexByGroup = memoizeByObject(
  (groups: readonly ServiceGroup[]): ReadonlyMap<ServiceGroup, number> =>
    new Map(groups.map((group, groupIndex) => [group, groupIndex])),
);

/** Returns `undefined` if all virtual hosts must be built. */
function* rebuildChangedInSteps(
  previous: PlannedHosts,
  changedHosts: ChangedHosts,
  {
    hostsWithAliases,
    ...inputs
  }: PlanInputs & { readonly hostsWithAliases: (place: number) => readonly CachedVirtualHost[] },
  context: PlanContext,
  similarity: ModelSimilarity | undefined,
): Generator<Encodable | undefined, PlannedHosts | undefined> {
  const usesOtherModel = similarity !== undefined;
  const { groups, virtualServices, unknownNames, aliasedPlaces } = inputs;
  if (previous.groups !== groups || !sameItems(previous.aliasedPlaces, aliasedPlaces)) return undefined;
  if (unknownNames.length !== previous.hostsByUnknownName.size) return undefined;
  const hostsByUnknownName = new Map<string, CachedVirtualHost>();
  const changedGroupIndexes: number[] = [];
  let hostsByGroup: (CachedVirtualHost | readonly CachedVirtualHost[])[] | undefined;
  let hosts: CachedVirtualHost[] | undefined;
  const hostMapping = groupHostMappingOf(previous);
  const changedIndexes: number[] = [];
  for (const index of groupIndexesToCheck(previous, changedHosts, inputs, similarity)) {
    const previousHost = previous.hostsByGroup[index]!;
    if (isList(previousHost)) continue;
    if (!isReusableHost(previousHost, groups[index]!, virtualServices[index], changedHosts, similarity?.isReusable))
      changedIndexes.push(index);
    if (usesOtherModel && index % checksPerStep === 0) yield undefined;
  }
  const replaceHost = (groupIndex: number, host: CachedVirtualHost): void => {
    if (host === previous.hosts[groupIndex]) return;
    hosts ??= previous.hosts.slice();
    hosts[groupIndex] = host;
    changedGroupIndexes.push(groupIndex);
  };
  for (const groupIndex of changedIndexes) {
    const host = buildVirtualHost(
      virtualHostSpecOf(groups[groupIndex]!, context.selection, virtualServices[groupIndex], []),
      context,
    );
    replaceHost(hostMapping.hostsOfGroup(groupIndex), host);
    hostsByGroup ??= previous.hostsByGroup.slice();
    hostsByGroup[groupIndex] = host;
    yield host.routes.routePart;
  }
  for (const groupIndex of aliasedPlaces) {
    const allHosts = hostsWithAliases(groupIndex);
    const previousHosts = previous.hostsByGroup[groupIndex] as readonly CachedVirtualHost[];
    if (allHosts.length !== previousHosts.length) return undefined;
    if (sameItems(previousHosts, allHosts)) continue;
    for (const [index, host] of allHosts.entries()) replaceHost(hostMapping.hostsOfGroup(groupIndex) + index, host);
    hostsByGroup ??= previous.hostsByGroup.slice();
    hostsByGroup[groupIndex] = allHosts;
    if (usesOtherModel) yield allHosts[0]!.routes.routePart;
  }
  const groupHostCount = hostMapping.hostsOfGroup(groups.length);
  const previousNames = previous.hostsByUnknownName.keys();
  for (const [index, unknownName] of unknownNames.entries()) {
    if (previousNames.next().value !== unknownName.hostname) return undefined;
    const host = hostOfUnknownName(unknownName, usesOtherModel ? undefined : previous, changedHosts, inputs, context);
    hostsByUnknownName.set(unknownName.hostname, host);
    replaceHost(groupHostCount + index, host);
    yield host.routes.routePart;
  }
  return {
    ...inputs,
    hostsByGroup: hostsByGroup ?? previous.hostsByGroup,
    hostsByUnknownName,
    hosts: hosts ?? previous.hosts,
    changedPlaces: changedGroupIndexes,
  };
}

function groupIndexesToCheck(
  previous: PlannedHosts,
  changedHosts: ChangedHosts,
  inputs: PlanInputs,
  similarity: ModelSimilarity | undefined,
): Iterable<number> {
  const { groups, virtualServices } = inputs;
  const differentlyRouted = differingIndexes(previous.virtualServices, virtualServices);
  if (similarity === undefined)
    return changedHosts.names.size === 0
      ? differentlyRouted
      : indexesLeadingToChangedHosts(previous, changedHosts, differentlyRouted, inputs);
  if (similarity.differingHosts === undefined || changedHosts.wildcards.length > 0) return groups.keys();
  const differingHosts = [...similarity.differingHosts, ...changedHosts.names];
  const indexesToRecheck = groupIndexesToRecheck(previous, groupHostMappingOf(previous).groupOf, {
    differing: differingHosts,
    domains: similarity.dnsDomains,
  });
  const hostIndexes = new Set(
    [...differentlyRouted, ...indexesToRecheck].filter((hostIndex) => hostIndex < groups.length),
  );
  return [...hostIndexes].sort((a, b) => a - b);
}

/** For more names than this, checking all groups is as fast as an index. */
const maxIndexedNames = 64;

/** Returns all groups if there are aliases. */
function indexesLeadingToChangedHosts(
  previous: PlannedHosts,
  { names, wildcards }: ChangedHosts,
  differentlyRouted: readonly number[],
  { groups, virtualServices, services }: PlanInputs,
): Iterable<number> {
  const haveAliases = aliasesIn(services).length > 0 || aliasesIn(previous.services).length > 0;
  if (haveAliases || wildcards.length > 0 || names.size > maxIndexedNames) return groups.keys();
  const indexesByHost = groupIndexesByDestination(groups, virtualServices);
  const hostIndexes = new Set([...differentlyRouted, ...[...names].flatMap((name) => indexesByHost.get(name) ?? [])]);
  return [...hostIndexes].sort((a, b) => a - b);
}

const aliasesIn = memoizeByObject((services: readonly Service[]) => services.filter(isAlias));

/** @param isReusable present if the previous host was built for another client */
function isReusableHost(
  previousHost: CachedVirtualHost,
  { service }: ServiceGroup,
  virtualService: ResolvedVirtualService | undefined,
  changedHosts: ChangedHosts,
  isReusable: IsReusable | undefined,
): boolean {
  return (
    isHostUnchanged(previousHost, virtualService, changedHosts) &&
    (isReusable === undefined || isReusable(previousHost, service.hostname))
  );
}

function hostOfUnknownName(
  { hostname, port, virtualService }: UnknownHost,
  previous: PlannedHosts | undefined,
  changedHosts: ChangedHosts | undefined,
  { groups, services }: PlanInputs,
  context: PlanContext,
): CachedVirtualHost {
  const previousHost = previous?.hostsByUnknownName.get(hostname);
  // The port of a host without a service depends on all services.
  const isReusable = previous?.services === services && previous.groups === groups;
  if (previousHost !== undefined && isReusable && isHostUnchanged(previousHost, virtualService, changedHosts!))
    return previousHost;
  return buildVirtualHost({ hostname, port, listenerPort: port, aliasServices: [], virtualService }, context);
}

function isList(host: CachedVirtualHost | readonly CachedVirtualHost[]): host is readonly CachedVirtualHost[] {
  return Array.isArray(host);
}

function sortByClaimPriority({
  hostsByGroup,
  hostsByUnknownName,
}: Pick<PlannedHosts, 'hostsByGroup' | 'hostsByUnknownName'>): readonly CachedVirtualHost[] {
  const hosts: CachedVirtualHost[] = [];
  for (const host of hostsByGroup) {
    if (isList(host)) hosts.push(...host);
    else hosts.push(host);
  }
  hosts.push(...hostsByUnknownName.values());
  return hosts;
}
