/** Explains RBAC filters, including shadow rules that select requests for an external authorizer. */
import type { RBAC as Rules } from '../../../gen/envoy/config/rbac/v3/rbac_pb.ts';
import type { RBAC } from '../../../gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts';
import type { RBAC as NetworkRbac } from '../../../gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.ts';
import { type FilterResult, UndecidedError } from './filter-result.ts';
import { decideRules } from './matched-policy.ts';
import type { Subject } from './subject.ts';

export const httpRbacName = 'envoy.filters.http.rbac';
export const networkRbacName = 'envoy.filters.network.rbac';

export function evaluateHttpRbac(
  { rules, matcher, shadowRules, shadowRulesStatPrefix }: RBAC,
  subject: Subject,
): FilterResult {
  if (matcher) throw new UndecidedError('the policies are a matcher tree');
  storeShadowResult(httpRbacName, shadowRules, shadowRulesStatPrefix, subject);
  const denial = rules && findDenial(rules, subject);
  if (denial === undefined) return undefined;
  return { outcome: { kind: 'denied', status: 403, details: detailsOf(denial.policy), why: denial.denialReason } };
}

export function evaluateNetworkRbac(
  { rules, matcher, shadowRules, shadowRulesStatPrefix }: NetworkRbac,
  subject: Subject,
): FilterResult {
  if (matcher) throw new UndecidedError('the policies are a matcher tree');
  storeShadowResult(networkRbacName, shadowRules, shadowRulesStatPrefix, subject);
  const denial = rules && findDenial(rules, subject);
  return denial && { outcome: { kind: 'closed', why: denial.denialReason } };
}

function findDenial(
  rules: Rules,
  subject: Subject,
): { readonly policy: string; readonly denialReason: string } | undefined {
  const { isAllowed, policy } = decideRules(rules, subject);
  if (isAllowed) return undefined;
  const reason = policy === undefined ? 'no AuthorizationPolicy allows it' : `policy ${policy} denies it`;
  return { policy: policy ?? 'none', denialReason: reason };
}

/** Replaces white space, which would end the access log field. */
function detailsOf(policy: string): string {
  return `rbac_access_denied_matched_policy[${policy.replaceAll(/\s/g, '_')}]`;
}

function storeShadowResult(filter: string, rules: Rules | undefined, prefix: string, subject: Subject): void {
  if (rules === undefined) return;
  const { isAllowed, policy } = decideRules(rules, subject);
  subject.metadata[filter] = {
    ...(subject.metadata[filter] as object | undefined),
    ...(policy !== undefined && { [`${prefix}shadow_effective_policy_id`]: policy }),
    [`${prefix}shadow_engine_result`]: isAllowed ? 'allowed' : 'denied',
  };
}
