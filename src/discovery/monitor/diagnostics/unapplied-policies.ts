import type { Config } from '../../../model/config/config.ts';
import type { PolicyScope } from '../../../model/kinds/policies/policy-target.ts';
import type { WorkloadPolicies } from '../../../model/push-context/workload-policies.ts';
import { type FindDiagnostics, policyKinds } from './find-diagnostics.ts';

export const findUnappliedPolicies: FindDiagnostics = function* ({ configs, proxies }, reportDiagnostic) {
  const appliedPolicies = new Set<Config>();
  const seenPolicies = new Set<WorkloadPolicies>();
  for (const { shape, context } of proxies) {
    yield;
    const policies = context.policiesFor(shape);
    if (seenPolicies.has(policies)) continue;
    seenPolicies.add(policies);
    const lists = [policies.authorizationPolicies, policies.peerAuthentications, policies.requestAuthentications];
    for (const policy of lists.flat()) appliedPolicies.add(policy);
  }
  for (const kind of policyKinds) {
    for (const policy of configs[kind] as readonly Config<PolicyScope>[]) {
      yield;
      if (!appliedPolicies.has(policy)) reportDiagnostic(`${kind} ${policy.namespace}/${policy.name}`, reason(policy));
    }
  }
};

function reason({ namespace, spec: { selector = {}, targetRefs = [] } }: Config<PolicyScope>): string {
  const labels = Object.entries(selector).map(([key, value]) => `${key}=${value}`);
  const targets = targetRefs.map(({ kind, name }) => `${kind} ${name}`);
  const selectorText =
    targets.length > 0
      ? ` that implements ${targets.join(', ')}`
      : labels.length > 0
        ? ` with ${labels.join(', ')}`
        : '';
  return `applies to no connected proxy: there is no proxy of namespace ${namespace}${selectorText}, or an older policy applies instead`;
}
