import { type Config, type ConfigKey, configKeyOf } from '../../model/config/config.ts';
import type { WorkloadPolicies } from '../../model/push-context/workload-policies.ts';

export type PolicyList = Exclude<keyof WorkloadPolicies, 'id'>;

const inboundLists = ['peerAuthentications', 'requestAuthentications', 'authorizationPolicies'] as const;

/** Excludes EnvoyFilters, because patches are a separate step with its own cache (patches/). */
const allLists: readonly PolicyList[] = [...inboundLists, 'telemetries', 'wasmPlugins'];

const cachedOutbound = new WeakMap<WorkloadPolicies, WorkloadPolicies>();

/**
 * Removes policies that apply only to inbound traffic, so that workloads share outbound resources. The ID consists of names, so equal IDs do not
 * imply equal objects: also compare {@link policyObjects}.
 */
export function policiesOutbound(policies: WorkloadPolicies): WorkloadPolicies {
  let outboundPolicies = cachedOutbound.get(policies);
  if (outboundPolicies === undefined) {
    const emptyLists = {
      peerAuthentications: [],
      requestAuthentications: [],
      authorizationPolicies: [],
      envoyFilters: [],
    };
    const otherPolicies = { ...policies, ...emptyLists };
    outboundPolicies = { ...otherPolicies, id: policyText(otherPolicies, ['telemetries', 'wasmPlugins']) };
    cachedOutbound.set(policies, outboundPolicies);
  }
  return outboundPolicies;
}

export function policyText(policies: WorkloadPolicies, lists: readonly PolicyList[]): string {
  const texts = lists.map((list) => policies[list].map(({ namespace, name }) => `${namespace}/${name}`).join());
  return texts.every((text) => text === '') ? '' : texts.join('~');
}

export function policyObjects(policies: WorkloadPolicies): readonly Config[] {
  return allLists.flatMap((list): readonly Config[] => policies[list]);
}

export function policyKeys(policies: WorkloadPolicies): readonly ConfigKey[] {
  return policyObjects(policies).map(configKeyOf);
}
