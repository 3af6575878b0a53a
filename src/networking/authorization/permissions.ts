import type { PermissionSchema } from '../../gen/envoy/config/rbac/v3/rbac_pb.ts';
import { UriTemplateMatchConfigSchema } from '../../gen/envoy/extensions/path/match/uri_template/v3/uri_template_match_pb.ts';
import type { AuthorizationOperation } from '../../model/kinds/policies/authorization-policy.ts';
import { cidrRange } from '../messages/address.ts';
import { pack } from '../messages/any.ts';
import type { Init } from '../messages/init.ts';
import { applicablePairs, type FieldPair, usesRequestFields } from './field-pairs.ts';
import { headerMatcher } from './header-matcher.ts';
import { caselessMatcher, type TextMatcher, textMatcher } from './text-matcher.ts';

export type RbacPermission = Init<typeof PermissionSchema>;
export type PermissionBuilder = (value: string) => RbacPermission;

const anyPermission: RbacPermission = { rule: { case: 'any', value: true } };
export const noPermission: RbacPermission = { rule: { case: 'notRule', value: anyPermission } };

function anyOfPermissions(rules: readonly RbacPermission[]): RbacPermission {
  return rules.length === 1 ? rules[0]! : { rule: { case: 'orRules', value: { rules: [...rules] } } };
}

export function allOfPermissions(rules: readonly RbacPermission[]): RbacPermission {
  if (rules.length === 0) return anyPermission;
  return rules.length === 1 ? rules[0]! : { rule: { case: 'andRules', value: { rules: [...rules] } } };
}

const host: PermissionBuilder = (value) => header(':authority', caselessMatcher(value));
const method: PermissionBuilder = (value) => header(':method', textMatcher(value));

/** Matches a path without its query. `{*}` matches one segment, `{**}` any number. */
const path: PermissionBuilder = (value) => {
  if (!value.includes('{')) {
    return { rule: { case: 'urlPath', value: { rule: { case: 'path', value: textMatcher(value) } } } };
  }
  const pathTemplate = value.replaceAll('{**}', '**').replaceAll('{*}', '*');
  const typedConfig = pack(UriTemplateMatchConfigSchema, { pathTemplate });
  return {
    rule: { case: 'uriTemplate', value: { name: 'envoy.path.match.uri_template.uri_template_matcher', typedConfig } },
  };
};

export const destinationPort: PermissionBuilder = (value) => ({
  rule: { case: 'destinationPort', value: Number(value) },
});

export const destinationAddress: PermissionBuilder = (value) => ({
  rule: { case: 'destinationIp', value: cidrRange(value)! },
});

export const serverName: PermissionBuilder = (value) => ({
  rule: { case: 'requestedServerName', value: textMatcher(value) },
});

function header(name: string, text: TextMatcher): RbacPermission {
  return { rule: { case: 'header', value: headerMatcher(name, text) } };
}

const fields: readonly FieldPair<AuthorizationOperation, PermissionBuilder>[] = [
  { allowedField: 'hosts', excludedField: 'notHosts', matcher: host, needsHttp: true },
  { allowedField: 'methods', excludedField: 'notMethods', matcher: method, needsHttp: true },
  { allowedField: 'paths', excludedField: 'notPaths', matcher: path, needsHttp: true },
  { allowedField: 'ports', excludedField: 'notPorts', matcher: destinationPort },
];

/**
 * All returned permissions must match.
 *
 * @param http if `false`, HTTP fields are omitted
 */
export function operationPermissions(operation: AuthorizationOperation, http: boolean): RbacPermission[] {
  return applicablePairs(fields, http).flatMap(({ allowedField, excludedField, matcher }) =>
    includedAndExcludedPermissions(operation[allowedField], operation[excludedField], matcher),
  );
}

export function isAboutRequests(operation: AuthorizationOperation): boolean {
  return usesRequestFields(operation, fields);
}

export function includedAndExcludedPermissions(
  values: readonly string[] | undefined,
  notValues: readonly string[] | undefined,
  matcher: PermissionBuilder,
): RbacPermission[] {
  return [
    ...(values ? [anyOfPermissions(values.map(matcher))] : []),
    ...(notValues ? [{ rule: { case: 'notRule' as const, value: anyOfPermissions(notValues.map(matcher)) } }] : []),
  ];
}
