/** What a request or a connection is about, as Envoy's RBAC filters match it (spec/discovery.md §8.10, matchers). */
import type { PermissionSchema } from '../../gen/envoy/config/rbac/v3/rbac_pb.ts';
import { UriTemplateMatchConfigSchema } from '../../gen/envoy/extensions/path/match/uri_template/v3/uri_template_match_pb.ts';
import type { AuthorizationOperation } from '../../model/kinds/policies/authorization-policy.ts';
import { cidrRange } from '../messages/address.ts';
import { pack } from '../messages/any.ts';
import type { Init } from '../messages/init.ts';
import { asksForRequests, type FieldPair, matchable } from './field-pairs.ts';
import { headerMatcher } from './header-matcher.ts';
import { caselessMatcher, type TextMatcher, textMatcher } from './text-matcher.ts';

export type Permission = Init<typeof PermissionSchema>;
export type PermissionOf = (value: string) => Permission;

const anyPermission: Permission = { rule: { case: 'any', value: true } };
export const noPermission: Permission = { rule: { case: 'notRule', value: anyPermission } };

/** At least one of the permissions must match. */
function anyOfPermissions(rules: readonly Permission[]): Permission {
  return rules.length === 1 ? rules[0]! : { rule: { case: 'orRules', value: { rules: [...rules] } } };
}

/** Each must match; any at all when there is none. */
export function allOfPermissions(rules: readonly Permission[]): Permission {
  if (rules.length === 0) return anyPermission;
  return rules.length === 1 ? rules[0]! : { rule: { case: 'andRules', value: { rules: [...rules] } } };
}

const host: PermissionOf = (value) => header(':authority', caselessMatcher(value));
const method: PermissionOf = (value) => header(':method', textMatcher(value));

/** A path without its query. `{*}` is one segment, `{**}` any number of them. */
const path: PermissionOf = (value) => {
  if (!value.includes('{')) {
    return { rule: { case: 'urlPath', value: { rule: { case: 'path', value: textMatcher(value) } } } };
  }
  const pathTemplate = value.replaceAll('{**}', '**').replaceAll('{*}', '*');
  const typedConfig = pack(UriTemplateMatchConfigSchema, { pathTemplate });
  return {
    rule: { case: 'uriTemplate', value: { name: 'envoy.path.match.uri_template.uri_template_matcher', typedConfig } },
  };
};

export const destinationPort: PermissionOf = (value) => ({ rule: { case: 'destinationPort', value: Number(value) } });

export const destinationAddress: PermissionOf = (value) => ({
  rule: { case: 'destinationIp', value: cidrRange(value)! },
});

/** What the client's TLS handshake asked for. */
export const serverName: PermissionOf = (value) => ({
  rule: { case: 'requestedServerName', value: textMatcher(value) },
});

function header(name: string, text: TextMatcher): Permission {
  return { rule: { case: 'header', value: headerMatcher(name, text) } };
}

const fields: readonly FieldPair<AuthorizationOperation, PermissionOf>[] = [
  { is: 'hosts', isNot: 'notHosts', matcher: host, ofRequests: true },
  { is: 'methods', isNot: 'notMethods', matcher: method, ofRequests: true },
  { is: 'paths', isNot: 'notPaths', matcher: path, ofRequests: true },
  { is: 'ports', isNot: 'notPorts', matcher: destinationPort },
];

/** What all must match of an operation; on a connection without what only requests have. */
export function operationPermissions(operation: AuthorizationOperation, http: boolean): Permission[] {
  return matchable(fields, http).flatMap(({ is, isNot, matcher }) =>
    wantedAndNotPermissions(operation[is], operation[isNot], matcher),
  );
}

export function isAboutRequests(operation: AuthorizationOperation): boolean {
  return asksForRequests(operation, fields);
}

/** Matches one of the values, and none of those that are not wanted. */
export function wantedAndNotPermissions(
  values: readonly string[] | undefined,
  notValues: readonly string[] | undefined,
  matcher: PermissionOf,
): Permission[] {
  return [
    ...(values ? [anyOfPermissions(values.map(matcher))] : []),
    ...(notValues ? [{ rule: { case: 'notRule' as const, value: anyOfPermissions(notValues.map(matcher)) } }] : []),
  ];
}
