/** Which of a workload's policies a resource is made from: keys and inputs of what is kept (see generator-memory.ts). */
import { type Config, type ConfigKey, configKeyOf } from '../../model/config/config.ts';
import type { WorkloadPolicies } from '../../model/push-context/workload-policies.ts';

/** The lists of a workload's policies. */
export type PolicyList = Exclude<keyof WorkloadPolicies, 'id'>;

/** About who may come to the workload: listeners through which it goes out have nothing of them. */
const inboundOnly = ['peerAuthentications', 'requestAuthentications', 'authorizationPolicies'] as const;

/** Not EnvoyFilters: what is made is patched in a step of its own, which tells patches apart itself (patches/). */
const everyList: readonly PolicyList[] = [...inboundOnly, 'telemetries', 'wasmPlugins'];

const outbound = new WeakMap<WorkloadPolicies, WorkloadPolicies>();

/**
 * Without those that hold for clients of the workload only, so that workloads which differ in nothing else share what
 * they send through. Its id tells the rest apart: equal ones may be made of different objects of the same names, which
 * {@link policyObjects} tells.
 */
export function policiesOutbound(policies: WorkloadPolicies): WorkloadPolicies {
  let narrowed = outbound.get(policies);
  if (narrowed === undefined) {
    const own = { peerAuthentications: [], requestAuthentications: [], authorizationPolicies: [], envoyFilters: [] };
    const rest = { ...policies, ...own };
    narrowed = { ...rest, id: policyText(rest, ['telemetries', 'wasmPlugins']) };
    outbound.set(policies, narrowed);
  }
  return narrowed;
}

/** Names of the objects in some of the lists; empty when there are none. */
export function policyText(policies: WorkloadPolicies, lists: readonly PolicyList[]): string {
  const texts = lists.map((list) => policies[list].map(({ namespace, name }) => `${namespace}/${name}`).join());
  return texts.every((text) => text === '') ? '' : texts.join('~');
}

/** All objects, list by list: inputs, to be compared one by one. */
export function policyObjects(policies: WorkloadPolicies): readonly Config[] {
  return everyList.flatMap((list): readonly Config[] => policies[list]);
}

/** What a resource that is made from all of them depends on. */
export function policyKeys(policies: WorkloadPolicies): readonly ConfigKey[] {
  return policyObjects(policies).map(configKeyOf);
}
