import type { AuthorizationCondition } from '../../model/kinds/policies/authorization-policy.ts';
import { ownValue } from '../../runtime/json-object.ts';
import { claimMatcher, listMatcher, textValue } from './claim-matchers.ts';
import { headerValueMatcher } from './header-matcher.ts';
import {
  destinationAddress,
  destinationPort,
  includedAndExcludedPermissions,
  type PermissionBuilder,
  type RbacPermission,
  serverName,
} from './permissions.ts';
import {
  certifiedAccount,
  certifiedDomain,
  certifiedNamespace,
  certifiedPrincipal,
  clientAddress,
  includedAndExcluded,
  metadataPrincipal,
  type PrincipalBuilder,
  peerAddress,
  type RbacPrincipal,
  type RuleContext,
  tokenPrincipal,
} from './principals.ts';
import { textMatcher } from './text-matcher.ts';

/** A rule matches if all permissions and principals match. */
export interface ConditionMatchers {
  readonly permissions: readonly RbacPermission[];
  readonly principals: readonly RbacPrincipal[];
}

/** @param http if `false`, conditions on HTTP attributes are omitted */
export function conditionMatchers(
  conditions: readonly AuthorizationCondition[],
  context: RuleContext,
  http: boolean,
): ConditionMatchers {
  const keptConditions = conditions.filter(({ key }) => http || !isRequestCondition(key));
  return {
    permissions: keptConditions.flatMap(({ key, values, notValues }) => {
      const matcher = permissionOf(key);
      return matcher === undefined ? [] : includedAndExcludedPermissions(values, notValues, matcher);
    }),
    principals: keptConditions.flatMap(({ key, values, notValues }) => {
      const matcher = principalOf(key);
      return matcher === undefined ? [] : includedAndExcluded(values, notValues, (value) => matcher(value, context));
    }),
  };
}

export function isRequestCondition(key: string): boolean {
  return key.startsWith('request.');
}

const permissions: Readonly<Record<string, PermissionBuilder>> = {
  'destination.ip': destinationAddress,
  'destination.port': destinationPort,
  'connection.sni': serverName,
};

const principals: Readonly<Record<string, PrincipalBuilder>> = {
  'source.ip': peerAddress,
  'remote.ip': clientAddress,
  'source.namespace': certifiedNamespace,
  'source.principal': certifiedPrincipal,
  'source.serviceAccount': certifiedAccount,
  'source.trustDomain': certifiedDomain,
  'request.auth.principal': tokenPrincipal,
  'request.auth.audiences': (value) => metadataPrincipal(claimMatcher(['aud'], textMatcher(value))),
  'request.auth.presenter': (value) => metadataPrincipal(claimMatcher(['azp'], textMatcher(value))),
};

function permissionOf(key: string): PermissionBuilder | undefined {
  return ownValue(permissions, key) ?? filterMetadata(key);
}

function principalOf(key: string): PrincipalBuilder | undefined {
  const principalOfKey = ownValue(principals, key);
  if (principalOfKey !== undefined) return principalOfKey;
  const keys = bracketedKeys(key);
  if (key.startsWith('request.headers[')) {
    return (value) => ({ identifier: { case: 'header', value: headerValueMatcher(keys[0]!, value) } });
  }
  if (key.startsWith('request.auth.claims[')) {
    return (value) => metadataPrincipal(claimMatcher(keys, textMatcher(value)));
  }
  return undefined;
}

/** A value `[text]` matches a list that contains the text. */
function filterMetadata(key: string): PermissionBuilder | undefined {
  const keyMatch = /^experimental\.(envoy\.filters\.[^[\]]+)\[([^[\]]+)\]$/.exec(key);
  if (keyMatch === null) return undefined;
  const [, filter, field] = keyMatch as unknown as [string, string, string];
  return (value) => {
    const isList = value.startsWith('[') && value.endsWith(']');
    const text = textValue(textMatcher(isList ? value.slice(1, -1) : value));
    const path = [{ segment: { case: 'key' as const, value: field } }];
    const metadataMatcher = { filter, path, value: isList ? listMatcher(text) : text };
    return { rule: { case: 'sourcedMetadata', value: { metadataMatcher } } };
  };
}

/** Converts `claims[a][b]` to `a`, `b`. */
function bracketedKeys(key: string): string[] {
  return [...key.matchAll(/\[([^[\]]+)\]/g)].map(([, claimKey]) => claimKey!);
}
