/** Which DestinationRule holds for a service, seen from a namespace (spec/discovery.md §8.2 "selection"). */
import { type Config, type ConfigKey, configKeyOf } from './config.ts';
import { qualifiedHost, widerHosts } from './hostname.ts';
import type { DestinationRule, Subset } from './kinds/destination-rule.ts';
import { isSelected } from './label-match.ts';
import type { MergedDestinationRule } from './resolved-rules.ts';
import type { Service } from './service.ts';
import { exportSet, isExportedTo, isPublic } from './visibility.ts';

type Labels = Readonly<Record<string, string>>;

interface Exported {
  readonly config: Config<DestinationRule>;
  readonly exportTo: ReadonlySet<string>;
}

/** Rules of one namespace by host, oldest first. */
type RulesByHost = ReadonlyMap<string, readonly Exported[]>;

export class DestinationRuleIndex {
  private readonly rootNamespace: string;
  /** Rules for every workload, by their namespace. */
  private readonly general: ReadonlyMap<string, RulesByHost>;
  /** Rules for chosen workloads, by their namespace. */
  private readonly selective: ReadonlyMap<string, RulesByHost>;
  private readonly merged = new Map<string, MergedDestinationRule>();

  /** @param configs oldest first */
  constructor(
    configs: readonly Config<DestinationRule>[],
    about: { readonly domain: string; readonly rootNamespace: string; readonly defaultExportTo: readonly string[] },
  ) {
    this.rootNamespace = about.rootNamespace;
    const rules = configs.map((config) => ({
      config: withQualifiedHost(config, about.domain),
      exportTo: exportSet(config.spec.exportTo, about.defaultExportTo),
    }));
    this.general = byNamespaceAndHost(rules.filter(({ config }) => config.spec.workloadSelector === undefined));
    this.selective = byNamespaceAndHost(rules.filter(({ config }) => config.spec.workloadSelector !== undefined));
  }

  /**
   * @param labels of the client's workload
   * @returns the merged rule of the first place that has one: rules of the client's namespace that select the workload,
   *   the client's namespace, the service's, the root namespace; in each the most specific host.
   */
  for(clientNamespace: string, service: Service, labels: Labels = {}): MergedDestinationRule | undefined {
    const selected = this.find(this.selective.get(clientNamespace), service.hostname, (rule) =>
      isSelected(rule.config.spec.workloadSelector!.labels, labels),
    );
    if (selected !== undefined) return mergeRules(selected);
    for (const namespace of new Set([clientNamespace, service.namespace, this.rootNamespace])) {
      // The root namespace's rules are defaults for all: for its own workloads too, others come first.
      const privately =
        namespace === this.rootNamespace && namespace === clientNamespace && namespace !== service.namespace;
      const found = this.generalRule(namespace, clientNamespace, service.hostname, privately);
      if (found !== undefined) return found;
    }
    return clientNamespace === this.rootNamespace
      ? this.generalRule(this.rootNamespace, clientNamespace, service.hostname, false)
      : undefined;
  }

  /** The rules of a namespace that hold for chosen workloads only. */
  selectiveKeys(namespace: string): readonly ConfigKey[] {
    return [...(this.selective.get(namespace)?.values() ?? [])].flat().map(({ config }) => configKeyOf(config));
  }

  private generalRule(
    namespace: string,
    clientNamespace: string,
    hostname: string,
    privately: boolean,
  ): MergedDestinationRule | undefined {
    const rules = this.find(this.general.get(namespace), hostname, ({ exportTo }) => {
      return isExportedTo(exportTo, namespace, clientNamespace) && !(privately && isPublic(exportTo));
    });
    if (rules === undefined) return undefined;
    // The same rules, merged once, for all who see them.
    const id = rules.map(({ config }) => `${config.namespace}/${config.name}`).join(' ');
    let merged = this.merged.get(id);
    if (merged === undefined) {
      merged = mergeRules(rules);
      this.merged.set(id, merged);
    }
    return merged;
  }

  private find(
    rules: RulesByHost | undefined,
    hostname: string,
    holds: (rule: Exported) => boolean,
  ): readonly Exported[] | undefined {
    if (rules === undefined) return undefined;
    for (const host of widerHosts(hostname)) {
      const holding = rules.get(host)?.filter(holds) ?? [];
      if (holding.length > 0) return holding;
    }
    return undefined;
  }
}

function withQualifiedHost(config: Config<DestinationRule>, domain: string): Config<DestinationRule> {
  const host = qualifiedHost(config.spec.host, config.namespace, domain);
  return host === config.spec.host ? config : { ...config, spec: { ...config.spec, host } };
}

function byNamespaceAndHost(rules: readonly Exported[]): Map<string, RulesByHost> {
  const result = new Map<string, RulesByHost>();
  for (const [namespace, group] of Map.groupBy(rules, ({ config }) => config.namespace)) {
    result.set(
      namespace,
      Map.groupBy(group, ({ config }) => config.spec.host),
    );
  }
  return result;
}

/** The oldest is the base; subsets of later ones are added (a name that is taken is dropped); the first traffic policy holds. */
function mergeRules(rules: readonly Exported[]): MergedDestinationRule {
  const base = rules[0]!.config;
  const origins = rules.map(({ config }) => configKeyOf(config));
  if (rules.length === 1) return { config: base, origins };
  const subsets = new Map<string, Subset>();
  for (const { config } of rules) {
    for (const subset of config.spec.subsets ?? []) if (!subsets.has(subset.name)) subsets.set(subset.name, subset);
  }
  const trafficPolicy = rules.find(({ config }) => config.spec.trafficPolicy !== undefined)?.config.spec.trafficPolicy;
  const spec = { ...base.spec, subsets: [...subsets.values()], ...(trafficPolicy && { trafficPolicy }) };
  return { config: { ...base, spec }, origins };
}
