/** AuthorizationPolicies of a workload as the rules of Envoy's RBAC filters (spec/discovery.md §8.10). */
import { type PolicySchema, RBAC_Action, type RBACSchema } from '../../gen/envoy/config/rbac/v3/rbac_pb.ts';
import type { Config } from '../../model/config/config.ts';
import type { AuthorizationPolicy, AuthorizationRule } from '../../model/kinds/policies/authorization-policy.ts';
import { isDryRun } from '../../model/kinds/policies/dry-run.ts';
import { trustDomainsOf } from '../../model/mesh/trust-domains.ts';
import type { Init } from '../messages/init.ts';
import { conditionMatchers, isOfRequests } from './conditions.ts';
import { allOfPermissions, isAboutRequests, noPermission, operationPermissions } from './permissions.ts';
import { allOfPrincipals, comesByRequests, noPrincipal, type RuleContext, sourcePrincipals } from './principals.ts';
import type { PoliciesContext } from './shared-filters.ts';

export type RbacRules = Init<typeof RBACSchema>;
type PolicyInit = Init<typeof PolicySchema>;

/** What the connections of a filter carry: requests, or bytes that nobody looks into. */
export type Carried = 'requests' | 'bytes';

/** The rules of one action, of which one filter is made. */
export interface ActionRules {
  readonly enforced?: RbacRules;
  /** Rules of policies that are only tried: what they would do is counted, and nothing comes of it. */
  readonly dryRun?: RbacRules;
  /** Prefix of the dry run's statistics and metadata. */
  readonly dryRunPrefix?: string;
}

const actions = [
  { action: 'AUDIT', envoy: RBAC_Action.LOG, dryRunPrefix: undefined },
  { action: 'DENY', envoy: RBAC_Action.DENY, dryRunPrefix: 'istio_dry_run_deny_' },
  { action: 'ALLOW', envoy: RBAC_Action.ALLOW, dryRunPrefix: 'istio_dry_run_allow_' },
] as const;

/**
 * In the order in which they are asked: what is to be told, who is refused, who is let in. Without a policy that lets
 * somebody in everybody is let in.
 */
export function actionRules(proxy: PoliciesContext, carried: Carried): ActionRules[] {
  return actions.flatMap(({ action, envoy, dryRunPrefix }) => {
    const ofAction = proxy.policies.authorizationPolicies.filter(({ spec }) => spec.action === action);
    const rules = (policies: readonly Config<AuthorizationPolicy>[]): RbacRules | undefined =>
      policies.length === 0
        ? undefined
        : {
            action: envoy,
            policies: envoyPolicies(policies, { proxy, carried, ignoresWhatIsMissing: action !== 'ALLOW' }),
          };
    const isTried = (policy: Config): boolean => dryRunPrefix !== undefined && isDryRun(policy);
    const enforced = rules(ofAction.filter((policy) => !isTried(policy)));
    const dryRun = rules(ofAction.filter(isTried));
    if (enforced === undefined && dryRun === undefined) return [];
    return { ...(enforced && { enforced }), ...(dryRun && { dryRun, dryRunPrefix: dryRunPrefix! }) };
  });
}

export interface RulesContext {
  readonly proxy: Pick<PoliciesContext, 'push'>;
  readonly carried: Carried;
  /**
   * What a rule says of requests is left out where there are none, so that it matches more, and more is refused or told;
   * false: such a rule matches nothing there. Either way nobody is let in who should not be.
   */
  readonly ignoresWhatIsMissing: boolean;
  /** Before the name of each policy. */
  readonly prefix?: string;
}

/** Policies by the names under which Envoy tells which of them it was. */
export function envoyPolicies(
  policies: readonly Config<AuthorizationPolicy>[],
  context: RulesContext,
): Record<string, PolicyInit> {
  const { proxy, prefix = '' } = context;
  const trustDomains = trustDomainsOf(proxy.push.mesh);
  return Object.fromEntries(
    policies.flatMap(({ namespace, name, spec }) => {
      const nameOf = (index: number): string => `${prefix}ns[${namespace}]-policy[${name}]-rule[${index}]`;
      // A policy without rules matches nobody, and is there to say so.
      if (spec.rules.length === 0) return [[nameOf(0), nobody]];
      return spec.rules.map((rule, index) => [nameOf(index), envoyPolicy(rule, { namespace, trustDomains }, context)]);
    }),
  );
}

const nobody: PolicyInit = { permissions: [noPermission], principals: [noPrincipal] };

function envoyPolicy(
  rule: AuthorizationRule,
  context: RuleContext,
  { carried, ignoresWhatIsMissing }: RulesContext,
): PolicyInit {
  const http = carried === 'requests';
  if (!http && !ignoresWhatIsMissing && needsRequests(rule)) return nobody;
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

/** Whether a part of the rule is about requests, which connections of bytes do not have. */
export function needsRequests({ from = [], to = [], when = [] }: AuthorizationRule): boolean {
  return from.some(comesByRequests) || to.some(isAboutRequests) || when.some(({ key }) => isOfRequests(key));
}
