import { type PolicySchema, RBAC_Action, type RBACSchema } from '../../gen/envoy/config/rbac/v3/rbac_pb.ts';
import type { Config } from '../../model/config/config.ts';
import type { AuthorizationPolicy, AuthorizationRule } from '../../model/kinds/policies/authorization-policy.ts';
import { isDryRun } from '../../model/kinds/policies/dry-run.ts';
import { trustDomainsOf } from '../../model/mesh/trust-domains.ts';
import type { Init } from '../messages/init.ts';
import { conditionMatchers, isRequestCondition } from './conditions.ts';
import { allOfPermissions, isAboutRequests, noPermission, operationPermissions } from './permissions.ts';
import { allOfPrincipals, noPrincipal, type RuleContext, sourcePrincipals, usesRequestSource } from './principals.ts';
import type { PoliciesContext } from './shared-filters.ts';

export type RbacRules = Init<typeof RBACSchema>;
type PolicyInit = Init<typeof PolicySchema>;

export type RuleTraffic = 'requests' | 'bytes';

export interface ActionRules {
  readonly enforced?: RbacRules;
  /** Rules of dry-run policies, which only record the result in statistics. */
  readonly dryRun?: RbacRules;
  readonly dryRunPrefix?: string;
}

const actions = [
  { action: 'AUDIT', envoy: RBAC_Action.LOG, dryRunPrefix: undefined },
  { action: 'DENY', envoy: RBAC_Action.DENY, dryRunPrefix: 'istio_dry_run_deny_' },
  { action: 'ALLOW', envoy: RBAC_Action.ALLOW, dryRunPrefix: 'istio_dry_run_allow_' },
] as const;

/** Actions in the order of evaluation: AUDIT, DENY, ALLOW. Without an ALLOW policy, all traffic is allowed. */
export function actionRules(proxy: PoliciesContext, traffic: RuleTraffic): ActionRules[] {
  return actions.flatMap(({ action, envoy, dryRunPrefix }) => {
    const actionPolicies = proxy.policies.authorizationPolicies.filter(({ spec }) => spec.action === action);
    const rules = (policies: readonly Config<AuthorizationPolicy>[]): RbacRules | undefined =>
      policies.length === 0
        ? undefined
        : {
            action: envoy,
            policies: envoyPolicies(policies, { proxy, traffic, ignoresHttpFields: action !== 'ALLOW' }),
          };
    const isDryRunPolicy = (policy: Config): boolean => dryRunPrefix !== undefined && isDryRun(policy);
    const enforcedRules = rules(actionPolicies.filter((policy) => !isDryRunPolicy(policy)));
    const dryRun = rules(actionPolicies.filter(isDryRunPolicy));
    if (enforcedRules === undefined && dryRun === undefined) return [];
    return {
      ...(enforcedRules && { enforced: enforcedRules }),
      ...(dryRun && { dryRun, dryRunPrefix: dryRunPrefix! }),
    };
  });
}

export interface RulesContext {
  readonly proxy: Pick<PoliciesContext, 'push'>;
  readonly traffic: RuleTraffic;
  /**
   * On TCP, a rule with HTTP fields must never allow more than the policy. If `true`, a DENY or AUDIT rule ignores these fields and so matches more.
   * If `false`, an ALLOW rule with such fields matches nothing.
   */
  readonly ignoresHttpFields: boolean;
  readonly prefix?: string;
}

/** RBAC policies by the name that Envoy reports for a match. */
export function envoyPolicies(
  policies: readonly Config<AuthorizationPolicy>[],
  context: RulesContext,
): Record<string, PolicyInit> {
  const { proxy, prefix = '' } = context;
  const trustDomains = trustDomainsOf(proxy.push.mesh);
  return Object.fromEntries(
    policies.flatMap(({ namespace, name, spec }) => {
      const nameOf = (index: number): string => `${prefix}ns[${namespace}]-policy[${name}]-rule[${index}]`;
      // A policy without rules matches nothing, so an ALLOW policy without rules denies all traffic.
      if (spec.rules.length === 0) return [[nameOf(0), neverMatchingPolicy]];
      return spec.rules.map((rule, index) => [nameOf(index), envoyPolicy(rule, { namespace, trustDomains }, context)]);
    }),
  );
}

const neverMatchingPolicy: PolicyInit = { permissions: [noPermission], principals: [noPrincipal] };

function envoyPolicy(
  rule: AuthorizationRule,
  context: RuleContext,
  { traffic, ignoresHttpFields }: RulesContext,
): PolicyInit {
  const http = traffic === 'requests';
  if (!http && !ignoresHttpFields && needsRequests(rule)) return neverMatchingPolicy;
  const conditions = conditionMatchers(rule.when ?? [], context, http);
  return {
    permissions: (rule.to ?? [{}]).map((operation) =>
      allOfPermissions([...operationPermissions(operation, http), ...conditions.permissions]),
    ),
    principals: (rule.from ?? [{}]).map((source) =>
      allOfPrincipals([...sourcePrincipals(source, context, http), ...conditions.principals]),
    ),
  };
}

export function needsRequests({ from = [], to = [], when = [] }: AuthorizationRule): boolean {
  return from.some(usesRequestSource) || to.some(isAboutRequests) || when.some(({ key }) => isRequestCondition(key));
}
