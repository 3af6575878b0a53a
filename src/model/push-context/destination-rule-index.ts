import type { Steps } from '../../runtime/turns.ts';
import { changedList, listDiff } from '../collections/list-diff.ts';
import { memoizeByObject } from '../collections/memoize-by-object.ts';
import { sameItems } from '../collections/same-items.ts';
import { type Config, type ConfigKey, compareAge, configKeyOf } from '../config/config.ts';
import { coveringKeys, type HostNames, isShortName, isWildcard, mostSpecificKey } from '../fields/hostname.ts';
import type { DestinationRule, Subset } from '../kinds/destinations/destination-rule.ts';
import type { LocalityLoadBalancerSetting } from '../kinds/destinations/traffic-policy.ts';
import { maxSubsets, maxWildcardSubsets } from '../kinds/object-limits.ts';
import type { MeshConfig } from '../mesh/mesh-config.ts';
import { SelectingList } from '../services/label-match.ts';
import type { Service } from '../services/service.ts';
import { servicesWithin } from '../services/services-within.ts';
import { type ExportRule, exportSet, isExportedTo, isPublic } from '../services/visibility.ts';
import type { MergedDestinationRule } from './resolved-rules.ts';
import { RuleRevision } from './rule-revision.ts';
import type { SidecarScope } from './sidecar-scope.ts';

type Labels = Readonly<Record<string, string>>;

interface ExportedRule {
  readonly config: Config<DestinationRule>;
  readonly exportTo: ReadonlySet<string>;
}

type RulesByHost = ReadonlyMap<string, readonly ExportedRule[]>;
type Rules = ReadonlyMap<string, RulesByHost>;

interface RuleContext {
  readonly hostNames: HostNames;
  readonly mesh: ExportRule & Pick<MeshConfig, 'defaultDestinationRuleExportTo'>;
}

interface Parts {
  readonly rootNamespace: string;
  readonly sources: readonly Config<DestinationRule>[];
  readonly exportedBySource: ReadonlyMap<Config<DestinationRule>, ExportedRule>;
  readonly generalRules: Rules;
  readonly selectiveRules: Rules;
  readonly renamedConfigKeys: readonly ConfigKey[];
  readonly revision: RuleRevision;
}

export class DestinationRuleIndex {
  private hasPrioritisedRule: boolean | undefined;
  private exportedHosts: Map<string, Set<string>> | undefined;
  private ruleByName: ReadonlyMap<string, ExportedRule> | undefined;
  private readonly rootNamespace: string;
  private readonly sources: readonly Config<DestinationRule>[];
  private readonly exportedBySource: ReadonlyMap<Config<DestinationRule>, ExportedRule>;
  private readonly generalRules: Rules;
  private readonly selectiveRules: Rules;
  /** Objects of the previous index whose short host now resolves to another host. */
  readonly renamedConfigKeys: readonly ConfigKey[];
  readonly revision: RuleRevision;

  private constructor(indexParts: Parts) {
    this.rootNamespace = indexParts.rootNamespace;
    this.sources = indexParts.sources;
    this.exportedBySource = indexParts.exportedBySource;
    this.generalRules = indexParts.generalRules;
    this.selectiveRules = indexParts.selectiveRules;
    this.renamedConfigKeys = indexParts.renamedConfigKeys;
    this.revision = indexParts.revision;
  }

  /**
   * @param configs oldest first
   * @param previous an index with the same settings and possibly other services
   */
  static *buildInSteps(
    configs: readonly Config<DestinationRule>[],
    { hostNames, mesh }: RuleContext,
    previous?: DestinationRuleIndex,
  ): Steps<DestinationRuleIndex> {
    const sourceDiff = listDiff(previous?.sources ?? [], configs);
    const removedRules = new Set(sourceDiff.removed);
    const renamedSources = (previous?.withOtherHost(hostNames) ?? []).filter((source) => !removedRules.has(source));
    const diff = {
      removed: [...sourceDiff.removed, ...renamedSources],
      added: [...sourceDiff.added, ...renamedSources],
    };
    const exportedBySource = new Map(previous?.exportedBySource);
    const removedExports = new Set(diff.removed.map((source) => exportedBySource.get(source)!));
    for (const source of diff.removed) exportedBySource.delete(source);
    const addedRules: ExportedRule[] = [];
    for (const source of diff.added) {
      const exportTo = exportSet(source.namespace, source.spec.exportTo, mesh.defaultDestinationRuleExportTo, mesh);
      const exportedRule = { config: withQualifiedHost(source, hostNames), exportTo };
      addedRules.push(exportedRule);
      exportedBySource.set(source, exportedRule);
      yield;
    }
    const hosts = [...removedExports, ...addedRules].map(({ config }) => config.spec.host);
    const filterBySelector = (rules: Iterable<ExportedRule>, hasSelector: boolean): ExportedRule[] =>
      [...rules].filter(({ config }) => (config.spec.workloadSelector !== undefined) === hasSelector);
    return new DestinationRuleIndex({
      rootNamespace: mesh.rootNamespace,
      ...{ sources: configs, exportedBySource, renamedConfigKeys: renamedSources.map(configKeyOf) },
      revision: (previous?.revision ?? RuleRevision.initial()).next(hosts),
      generalRules: yield* changedRules(
        previous?.generalRules,
        filterBySelector(removedExports, false),
        filterBySelector(addedRules, false),
        mesh,
      ),
      selectiveRules: yield* changedRules(
        previous?.selectiveRules,
        filterBySelector(removedExports, true),
        filterBySelector(addedRules, true),
        mesh,
      ),
    });
  }

  /**
   * @param labels of the client's workload
   * @returns the merged rule of the first of these namespaces that has one: client, service, root. The rule with the most specific host applies.
   * Rules of the client's namespace that select the workload have priority.
   */
  ruleFor(clientNamespace: string, service: Service, labels: Labels = noLabels): MergedDestinationRule | undefined {
    const selectedRule = this.findRules(
      this.chosenRules(clientNamespace, labels)?.rulesByHost,
      service.hostname,
      () => true,
    );
    for (const namespace of new Set([clientNamespace, service.namespace, this.rootNamespace])) {
      // Rules of the root namespace are defaults for all namespaces, so other rules have priority even for its own workloads.
      const isOwnNamespaceOnly =
        namespace === this.rootNamespace && namespace === clientNamespace && namespace !== service.namespace;
      const generalRule = this.generalRule(namespace, clientNamespace, service.hostname, isOwnNamespaceOnly);
      if (namespace === clientNamespace && selectedRule !== undefined) {
        const mergedRule = mergedRuleOf(selectedRule);
        return generalRule !== undefined && isNarrower(generalRule, mergedRule, service.hostname)
          ? generalRule
          : mergedRule;
      }
      if (generalRule !== undefined) return generalRule;
    }
    return clientNamespace === this.rootNamespace
      ? this.generalRule(this.rootNamespace, clientNamespace, service.hostname, false)
      : undefined;
  }

  /** Hosts, including wildcards, of rules that apply to these workloads but possibly not in other namespaces. */
  hostsVisibleTo(namespace: string, labels: Labels): readonly string[] {
    const chosenHosts = this.chosenRules(namespace, labels)?.rulesByHost.keys() ?? [];
    const shownHosts = this.hostsByExportTarget().get(namespace) ?? [];
    return [...(this.generalRules.get(namespace)?.keys() ?? []), ...chosenHosts, ...shownHosts];
  }

  private hostsByExportTarget(): ReadonlyMap<string, ReadonlySet<string>> {
    if (this.exportedHosts === undefined) {
      this.exportedHosts = new Map();
      for (const { config, exportTo } of this.exportedBySource.values()) {
        if (isPublic(exportTo)) continue;
        for (const namespace of exportTo) {
          const hosts = this.exportedHosts.get(namespace) ?? new Set();
          this.exportedHosts.set(namespace, hosts.add(config.spec.host));
        }
      }
    }
    return this.exportedHosts;
  }

  selectingText(namespace: string, labels: Labels): string {
    return this.chosenRules(namespace, labels)?.names ?? '';
  }

  private chosenRules(namespace: string, labels: Labels): ChosenRules | undefined {
    const rules = this.selectiveRules.get(namespace);
    return rules && chosenRulesByText(rules)(labels);
  }

  isCurrent(hostNames: HostNames): boolean {
    return this.withOtherHost(hostNames).length === 0;
  }

  private withOtherHost(hostNames: HostNames): Config<DestinationRule>[] {
    if (hostNames.isFixed) return [];
    return this.sources.filter((source) => {
      const { host } = source.spec;
      const previousHost = this.exportedBySource.get(source)!.config.spec.host;
      return isShortName(host) && hostNames.qualify(host, source.namespace) !== previousHost;
    });
  }

  get haveFailoverPriorities(): boolean {
    this.hasPrioritisedRule ??= this.sources.some(({ spec }) =>
      [spec.trafficPolicy, ...(spec.subsets ?? []).map((subset) => subset.trafficPolicy)].some(
        (policy) =>
          policy !== undefined &&
          [policy, ...(policy.portLevelSettings ?? [])].some(
            ({ loadBalancer }) =>
              hasPriorities(loadBalancer?.localityLbSetting) || hasPriorities(loadBalancer?.zoneAwareLbSetting),
          ),
      ),
    );
    return this.hasPrioritisedRule;
  }

  hostOf(key: ConfigKey): string | undefined {
    return this.rulesByName().get(nameOf(key))?.config.spec.host;
  }

  mayApplyIn(scope: Pick<SidecarScope, 'namespace' | 'services' | 'serviceByHostname'>, key: ConfigKey): boolean {
    const rule = this.rulesByName().get(nameOf(key));
    if (rule === undefined) return false;
    const { config, exportTo } = rule;
    const owner = config.namespace || this.rootNamespace;
    if (config.spec.workloadSelector !== undefined) return owner === scope.namespace;
    if (!isExportedTo(exportTo, owner, scope.namespace)) return false;
    const appliesTo = (service: Service): boolean =>
      this.ruleFor(scope.namespace, service)?.origins.some(
        (candidate) => candidate.name === key.name && candidate.namespace === key.namespace,
      ) ?? false;
    const { host } = config.spec;
    if (!isWildcard(host)) {
      const service = scope.serviceByHostname(host);
      return service !== undefined && appliesTo(service);
    }
    const isForAll = owner === scope.namespace || owner === this.rootNamespace;
    return servicesWithin(scope.services, host).some(
      (scopeService) => (isForAll || scopeService.namespace === owner) && appliesTo(scopeService),
    );
  }

  private rulesByName(): ReadonlyMap<string, ExportedRule> {
    this.ruleByName ??= new Map(this.sources.map((source) => [nameOf(source), this.exportedBySource.get(source)!]));
    return this.ruleByName;
  }

  private generalRule(
    namespace: string,
    clientNamespace: string,
    hostname: string,
    isPrivate: boolean,
  ): MergedDestinationRule | undefined {
    const rules = this.findRules(this.generalRules.get(namespace), hostname, ({ exportTo }) => {
      return isExportedTo(exportTo, namespace, clientNamespace) && !(isPrivate && isPublic(exportTo));
    });
    if (rules === undefined) return undefined;
    return mergedRuleOf(rules);
  }

  private findRules(
    rules: RulesByHost | undefined,
    hostname: string,
    isIncluded: (rule: ExportedRule) => boolean,
  ): readonly ExportedRule[] | undefined {
    if (rules === undefined) return undefined;
    const namedRules = rules.get(hostname)?.filter(isIncluded) ?? [];
    // Avoids the wildcard search: this runs for each service of each namespace, and nearly all rules have an exact host.
    if (namedRules.length > 0 || !hasWildcards(rules)) return namedRules.length > 0 ? namedRules : undefined;
    for (const host of coveringKeys(hostname, rules)) {
      const includedRules = rules.get(host)?.filter(isIncluded) ?? [];
      if (includedRules.length > 0) return includedRules;
    }
    return undefined;
  }
}

function isNarrower(rule: MergedDestinationRule, otherRule: MergedDestinationRule, hostname: string): boolean {
  const [a, b] = [rule.config.spec.host, otherRule.config.spec.host];
  return a !== b && mostSpecificKey(hostname, new Set([a, b])) === a;
}

const noLabels: Labels = {};

interface ChosenRules {
  readonly rulesByHost: RulesByHost;
  readonly names: string;
}

const chosenRulesByText = memoizeByObject((rules: RulesByHost) => {
  const list = new SelectingList([...rules.values()].flat(), ({ config }) => config.spec.workloadSelector?.labels);
  return memoizeByObject((labels: Labels): ChosenRules => {
    const chosenRules = list.itemsSelecting(labels);
    return {
      rulesByHost: Map.groupBy(chosenRules, ({ config }) => config.spec.host),
      names: chosenRules
        .map(({ config }) => config.name)
        .sort()
        .join(),
    };
  });
});

function nameOf({ namespace, name }: Pick<ConfigKey, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`;
}

export function hasPriorities(setting: Pick<LocalityLoadBalancerSetting, 'failoverPriority'> | undefined): boolean {
  return (setting?.failoverPriority?.length ?? 0) > 0;
}

function withQualifiedHost(config: Config<DestinationRule>, hostNames: HostNames): Config<DestinationRule> {
  const host = hostNames.qualify(config.spec.host, config.namespace);
  return host === config.spec.host ? config : { ...config, spec: { ...config.spec, host } };
}

function* changedRules(
  previous: Rules | undefined,
  removedExports: readonly ExportedRule[],
  addedExports: readonly ExportedRule[],
  { rootNamespace }: Pick<ExportRule, 'rootNamespace'>,
): Steps<Rules> {
  if (previous !== undefined && removedExports.length + addedExports.length === 0) return previous;
  const rules = new Map(previous);
  const removedRules = new Set(removedExports);
  // A placeholder for an object with an unreadable namespace applies to the whole mesh.
  const namespaceOf = ({ config }: ExportedRule): string => config.namespace || rootNamespace;
  const hostOf = ({ config }: ExportedRule): string => config.spec.host;
  for (const [namespace, changes] of Map.groupBy([...removedExports, ...addedExports], namespaceOf)) {
    yield;
    const rulesByHost = new Map(rules.get(namespace));
    for (const [host, hostRules] of Map.groupBy(changes, hostOf)) {
      const remainingRules = hostRules.filter((rule) => !removedRules.has(rule));
      const list = changedList(rulesByHost.get(host) ?? [], removedRules, remainingRules, (a, b) =>
        compareAge(a.config, b.config),
      );
      if (list.length === 0) rulesByHost.delete(host);
      else rulesByHost.set(host, list);
      yield;
    }
    if (rulesByHost.size === 0) rules.delete(namespace);
    else rules.set(namespace, rulesByHost);
  }
  return rules;
}

const hasWildcards = memoizeByObject((rules: RulesByHost) => [...rules.keys()].some(isWildcard));

const mergedRules = new WeakMap<ExportedRule, { rules: readonly ExportedRule[]; result: MergedDestinationRule }[]>();

function mergedRuleOf(rules: readonly ExportedRule[]): MergedDestinationRule {
  const cachedMerges = mergedRules.get(rules[0]!) ?? [];
  const cachedResult = cachedMerges.find((cachedMerge) => sameItems(cachedMerge.rules, rules));
  if (cachedResult !== undefined) return cachedResult.result;
  const result = mergeRules(rules);
  // Caches only the last few results, because clients may see different subsets of the rules.
  mergedRules.set(rules[0]!, [{ rules, result }, ...cachedMerges.slice(0, 7)]);
  return result;
}

/** The oldest rule is the base. Adds subsets of later rules with new names, up to the limit of one object. */
function mergeRules(rules: readonly ExportedRule[]): MergedDestinationRule {
  const base = rules[0]!.config;
  const origins = rules.map(({ config }) => configKeyOf(config));
  if (rules.length === 1) return { config: base, origins };
  const subsets = new Map<string, Subset>();
  const max = isWildcard(base.spec.host) ? maxWildcardSubsets : maxSubsets;
  for (const { config } of rules) {
    for (const subset of config.spec.subsets ?? []) {
      if (subsets.size < max && !subsets.has(subset.name)) subsets.set(subset.name, subset);
    }
  }
  const trafficPolicy = rules.find(({ config }) => config.spec.trafficPolicy !== undefined)?.config.spec.trafficPolicy;
  const spec = { ...base.spec, subsets: [...subsets.values()], ...(trafficPolicy && { trafficPolicy }) };
  return { config: { ...base, spec }, origins };
}
