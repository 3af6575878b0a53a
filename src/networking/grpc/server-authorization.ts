/** Converts AuthorizationPolicies to RBAC filters of gRPC servers (A41): first DENY, then ALLOW. Conditions that gRPC cannot check fail closed. */
import { RBAC_Action } from '../../gen/envoy/config/rbac/v3/rbac_pb.ts';
import { RBACSchema } from '../../gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts';
import { configKeyOf } from '../../model/config/config.ts';
import { isDryRun } from '../../model/kinds/policies/dry-run.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { WorkloadPolicies } from '../../model/push-context/workload-policies.ts';
import type { RbacPermission } from '../authorization/permissions.ts';
import type { RbacPrincipal } from '../authorization/principals.ts';
import { actionRules, type RbacRules } from '../authorization/rbac-rules.ts';
import { type TypedExtension, typedExtension } from '../messages/any.ts';
import { type Limitation, objectOrigins } from './limitation.ts';

const denyFilter = 'envoy.filters.http.rbac.deny';
const allowFilter = 'envoy.filters.http.rbac.allow';

/** The filter allows no call, because it has no policies. */
const denyAllFilter = typedExtension(allowFilter, RBACSchema, { rules: { action: RBAC_Action.ALLOW, policies: {} } });

export function grpcAuthorization(
  policies: Pick<WorkloadPolicies, 'authorizationPolicies'>,
  push: PushContext,
): { readonly filters: readonly TypedExtension[]; readonly limitations: readonly Limitation[] } {
  const policiesOfAction = (action: string) =>
    policies.authorizationPolicies.filter(({ spec }) => spec.action === action);
  const limits = (texts: readonly (readonly [Parameters<typeof configKeyOf>[0], string])[]): Limitation[] =>
    texts.map(([config, text]) => ({ origins: objectOrigins(configKeyOf(config)), text }));
  const customPolicies = policiesOfAction('CUSTOM');
  const limitations = limits([
    ...customPolicies.map(
      (policy) => [policy, 'all calls are denied: gRPC servers cannot query an external authorizer'] as const,
    ),
    ...policiesOfAction('AUDIT').map((policy) => [policy, 'action AUDIT is ignored'] as const),
    ...policies.authorizationPolicies.filter(isDryRun).map((policy) => [policy, 'the dry run is ignored'] as const),
  ]);
  if (customPolicies.length > 0) return { filters: [denyAllFilter], limitations };
  const uncheckedConditions = new Set<string>();
  const filters = actionRules({ policies, push }, 'requests').flatMap(({ enforced }) => {
    if (enforced === undefined || enforced.action === RBAC_Action.LOG) return [];
    return [
      typedExtension(enforced.action === RBAC_Action.DENY ? denyFilter : allowFilter, RBACSchema, {
        rules: withoutUnchecked(enforced, uncheckedConditions),
      }),
    ];
  });
  const denyingPolicies = [...uncheckedConditions].map(
    (condition): Limitation => ({
      origins: [...policiesOfAction('DENY'), ...policiesOfAction('ALLOW')].flatMap((policy) =>
        objectOrigins(configKeyOf(policy)),
      ),
      text: `gRPC servers cannot check ${condition}: rules with it deny, and do not allow`,
    }),
  );
  return { filters, limitations: [...limitations, ...denyingPolicies] };
}

function withoutUnchecked(rules: RbacRules, uncheckedConditions: Set<string>): RbacRules {
  const isDeny = rules.action === RBAC_Action.DENY;
  const policies = Object.entries(rules.policies ?? {}).map(([name, { permissions = [], principals = [] }]) => [
    name,
    {
      permissions: permissions.map((rbacPermission) =>
        checkablePermission(rbacPermission as RbacPermission, isDeny, uncheckedConditions),
      ),
      principals: principals.map((rbacPrincipal) =>
        checkablePrincipal(rbacPrincipal as RbacPrincipal, isDeny, uncheckedConditions),
      ),
    },
  ]);
  return { action: rules.action!, policies: Object.fromEntries(policies) };
}

/** Whether gRPC servers hide the header from RBAC. */
const isHiddenHeader = (name: string | undefined): boolean => name === ':scheme' || (name ?? '').startsWith('grpc-');

/** @param fallback result for conditions that gRPC cannot check */
function checkablePermission(
  permission: RbacPermission,
  fallback: boolean,
  uncheckedConditions: Set<string>,
): RbacPermission {
  const { rule } = permission;
  const checkablePermissions = (rules: readonly unknown[] = []) =>
    rules.map((nestedRule) =>
      checkablePermission(nestedRule as RbacPermission, fallback, uncheckedConditions),
    ) as never;
  switch (rule?.case) {
    case 'any':
    case 'urlPath':
    case 'destinationIp':
    case 'destinationPort':
      return permission;
    case 'header':
      if (!isHiddenHeader(rule.value.name)) return permission;
      break;
    case 'andRules':
      return { rule: { case: 'andRules', value: { rules: checkablePermissions(rule.value.rules) } } };
    case 'orRules':
      return { rule: { case: 'orRules', value: { rules: checkablePermissions(rule.value.rules) } } };
    case 'notRule':
      return {
        rule: {
          case: 'notRule',
          value: checkablePermission(rule.value as RbacPermission, !fallback, uncheckedConditions) as never,
        },
      };
    case 'sourcedMetadata':
    case 'metadata':
      // gRPC does not validate tokens, so there are no claims.
      return { rule: { case: 'notRule', value: { rule: { case: 'any', value: true } } } };
  }
  uncheckedConditions.add(checkText[rule?.case ?? ''] ?? rule?.case ?? '');
  const anyPermission: RbacPermission = { rule: { case: 'any', value: true } };
  return fallback ? anyPermission : { rule: { case: 'notRule', value: anyPermission as never } };
}

function checkablePrincipal(
  principal: RbacPrincipal,
  fallback: boolean,
  uncheckedConditions: Set<string>,
): RbacPrincipal {
  const { identifier } = principal;
  const checkablePrincipals = (ids: readonly unknown[] = []) =>
    ids.map((nestedId) => checkablePrincipal(nestedId as RbacPrincipal, fallback, uncheckedConditions)) as never;
  switch (identifier?.case) {
    case 'any':
    case 'authenticated':
    case 'directRemoteIp':
    case 'remoteIp':
    case 'urlPath':
      return principal;
    case 'header':
      if (!isHiddenHeader(identifier.value.name)) return principal;
      break;
    case 'andIds':
      return { identifier: { case: 'andIds', value: { ids: checkablePrincipals(identifier.value.ids) } } };
    case 'orIds':
      return { identifier: { case: 'orIds', value: { ids: checkablePrincipals(identifier.value.ids) } } };
    case 'notId':
      return {
        identifier: {
          case: 'notId',
          value: checkablePrincipal(identifier.value as RbacPrincipal, !fallback, uncheckedConditions) as never,
        },
      };
    case 'sourcedMetadata':
    case 'metadata':
      return { identifier: { case: 'notId', value: { identifier: { case: 'any', value: true } } } };
  }
  uncheckedConditions.add(checkText[identifier?.case ?? ''] ?? identifier?.case ?? '');
  const anyPrincipal: RbacPrincipal = { identifier: { case: 'any', value: true } };
  return fallback ? anyPrincipal : { identifier: { case: 'notId', value: anyPrincipal as never } };
}

const checkText: Readonly<Record<string, string>> = {
  header: 'headers that begin with "grpc-"',
  requestedServerName: 'the server name of TLS',
  uriTemplate: 'path templates',
  filterState: 'filter state',
};
