/** Reports DestinationRules of one host that lose parts when they are merged. */
import type { Config } from '../../../model/config/config.ts';
import type { DestinationRule } from '../../../model/kinds/destinations/destination-rule.ts';
import { exportSet } from '../../../model/services/visibility.ts';
import { type CheckSources, type ConfigCheck, type ConfigWarning, isWrittenConfig } from '../config-warning.ts';
import { haveSharedClients } from '../policies/shared-clients.ts';

type Rule = Config<DestinationRule>;

interface OlderRules {
  policyRule?: Rule;
  readonly subsets: Map<string, Rule>;
}

export const checkMergedRules: ConfigCheck = function* ({ context, configs }) {
  const olderRulesByHost = new Map<string, OlderRules>();
  for (const config of configs.DestinationRule) {
    yield undefined;
    const { namespace, spec } = config;
    if (!isWrittenConfig(config) || spec.workloadSelector !== undefined) continue;
    const host = context.hostNames.qualify(spec.host, namespace);
    const key = `${namespace} ${host}`;
    const olderRules: OlderRules = olderRulesByHost.get(key) ?? { subsets: new Map() };
    olderRulesByHost.set(key, olderRules);
    for (const [index, { name }] of (spec.subsets ?? []).entries()) {
      const olderRule = olderRules.subsets.get(name);
      if (olderRule === undefined) olderRules.subsets.set(name, config);
      else yield ignoredSubsetWarning(config, index, name, olderRule);
    }
    if (spec.trafficPolicy === undefined) continue;
    if (olderRules.policyRule === undefined) olderRules.policyRule = config;
    else if (areShared(olderRules.policyRule, config, context))
      yield ignoredPolicyWarning(config, olderRules.policyRule, host);
  }
};

function ignoredSubsetWarning(config: Rule, index: number, name: string, olderRule: Rule): ConfigWarning | undefined {
  if (olderRule === config) return undefined;
  return {
    ...{ code: 'SUBSET_CONFLICT', config, field: `spec.subsets[${index}]` },
    message: `subset ${name} is defined by the older DestinationRule ${olderRule.namespace}/${olderRule.name}, which applies: remove it from one of them`,
    other: { config: olderRule, field: 'spec.subsets' },
  };
}

function ignoredPolicyWarning(config: Rule, policyHolder: Rule, host: string): ConfigWarning {
  const { portLevelSettings, ...otherSettings } = config.spec.trafficPolicy!;
  const isPortsOnly = portLevelSettings !== undefined && Object.keys(otherSettings).length === 0;
  const field = isPortsOnly ? 'trafficPolicy.portLevelSettings' : 'trafficPolicy';
  return {
    ...{ code: 'TRAFFIC_POLICY_LOST', config, field: `spec.${field}` },
    message: `is not applied to ${host}: only the trafficPolicy of the oldest DestinationRule that has one applies to a host, here DestinationRule ${policyHolder.namespace}/${policyHolder.name}; move it there`,
    other: { config: policyHolder, field: 'spec.trafficPolicy' },
  };
}

function areShared(a: Rule, b: Rule, { mesh }: CheckSources['context']): boolean {
  const exportScopeOf = ({ namespace, spec }: Rule) => ({
    namespace,
    exportTo: exportSet(namespace, spec.exportTo, mesh.defaultDestinationRuleExportTo, mesh),
  });
  return haveSharedClients(exportScopeOf(a), exportScopeOf(b));
}
