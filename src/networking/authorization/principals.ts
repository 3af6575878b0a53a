/** From whom a request or a connection comes, as Envoy's RBAC filters match it (spec/discovery.md §8.10, matchers). */
import type { PrincipalSchema } from '../../gen/envoy/config/rbac/v3/rbac_pb.ts';
import type { AuthorizationSource } from '../../model/kinds/policies/authorization-policy.ts';
import { cidrRange } from '../messages/address.ts';
import type { Init } from '../messages/init.ts';
import { type MetadataMatch, requestPrincipalMatchers } from './claim-matchers.ts';
import { asksForRequests, type FieldPair, matchable } from './field-pairs.ts';
import { underAllDomains } from './principal-trust-domains.ts';
import { regexMatcher, regexOf, type TextMatcher, textMatcher } from './text-matcher.ts';

export type Principal = Init<typeof PrincipalSchema>;

/** What the texts of a rule mean depends on. */
export interface RuleContext {
  /** Namespace of the policy. */
  readonly namespace: string;
  /** The mesh's own, then its aliases. */
  readonly trustDomains: readonly string[];
}

export type PrincipalOf = (value: string, context: RuleContext) => Principal;

const scheme = 'spiffe://';

const anyPrincipal: Principal = { identifier: { case: 'any', value: true } };
export const noPrincipal: Principal = { identifier: { case: 'notId', value: anyPrincipal } };

/** At least one of the principals must match. */
function anyOfPrincipals(ids: readonly Principal[]): Principal {
  if (ids.length === 0) return noPrincipal;
  return ids.length === 1 ? ids[0]! : { identifier: { case: 'orIds', value: { ids: [...ids] } } };
}

/** Each must match; any at all when there is none. */
export function allOfPrincipals(ids: readonly Principal[]): Principal {
  if (ids.length === 0) return anyPrincipal;
  return ids.length === 1 ? ids[0]! : { identifier: { case: 'andIds', value: { ids: [...ids] } } };
}

/** `cluster.local/ns/shop/sa/web`: the identity in the client's certificate. */
export const certifiedPrincipal: PrincipalOf = (value, { trustDomains }) =>
  anyOfPrincipals(
    underAllDomains(value, trustDomains).map((principal) =>
      // What begins with `*` may begin anywhere.
      authenticated(textMatcher(principal.startsWith('*') ? principal : `${scheme}${principal}`)),
    ),
  );

/** Namespace of the client's service account. */
export const certifiedNamespace: PrincipalOf = (value) =>
  authenticated(regexMatcher(`.*/ns/${regexOf(value, '.*')}/.*`));

/** `account` of the policy's own namespace, or `namespace/account`. Identities may have more segments before, between and behind. */
export const certifiedAccount: PrincipalOf = (value, context) => {
  const [namespace, account] = value.includes('/') ? value.split('/') : [context.namespace, value];
  const part = (text = ''): string => regexOf(text, '[^/]+');
  return authenticated(regexMatcher(`${scheme}.+/ns/${part(namespace)}/(.+/)?sa/${part(account)}(/.+)?`));
};

export const certifiedDomain: PrincipalOf = (value, { trustDomains }) =>
  anyOfPrincipals(
    // As a principal's domain: the mesh's names for itself mean each other.
    underAllDomains(`${value}/`, trustDomains).map((domain) =>
      authenticated(regexMatcher(`${scheme}${regexOf(domain, '[^/]*')}.*`)),
    ),
  );

/** Address of the connection's peer. */
export const peerAddress: PrincipalOf = (value) => ({
  identifier: { case: 'directRemoteIp', value: cidrRange(value)! },
});

/** Address of the client, as trusted headers say it. */
export const clientAddress: PrincipalOf = (value) => ({ identifier: { case: 'remoteIp', value: cidrRange(value)! } });

export const tokenPrincipal: PrincipalOf = (value) =>
  anyOfPrincipals(requestPrincipalMatchers(value).map((parts) => allOfPrincipals(parts.map(metadataPrincipal))));

export function metadataPrincipal(value: MetadataMatch): Principal {
  return { identifier: { case: 'sourcedMetadata', value: { metadataMatcher: value } } };
}

function authenticated(principalName: TextMatcher): Principal {
  return { identifier: { case: 'authenticated', value: { principalName } } };
}

const fields: readonly FieldPair<AuthorizationSource, PrincipalOf>[] = [
  { is: 'principals', isNot: 'notPrincipals', matcher: certifiedPrincipal },
  { is: 'requestPrincipals', isNot: 'notRequestPrincipals', matcher: tokenPrincipal, ofRequests: true },
  { is: 'namespaces', isNot: 'notNamespaces', matcher: certifiedNamespace },
  { is: 'serviceAccounts', isNot: 'notServiceAccounts', matcher: certifiedAccount },
  { is: 'trustDomains', isNot: 'notTrustDomains', matcher: certifiedDomain },
  { is: 'ipBlocks', isNot: 'notIpBlocks', matcher: peerAddress },
  { is: 'remoteIpBlocks', isNot: 'notRemoteIpBlocks', matcher: clientAddress },
];

/** What all must match of a source; on a connection without what only requests have. */
export function sourcePrincipals(source: AuthorizationSource, context: RuleContext, http: boolean): Principal[] {
  return matchable(fields, http).flatMap(({ is, isNot, matcher }) =>
    wantedAndNot(source[is], source[isNot], (value) => matcher(value, context)),
  );
}

export function comesByRequests(source: AuthorizationSource): boolean {
  return asksForRequests(source, fields);
}

/** Matches one of the values, and none of those that are not wanted. */
export function wantedAndNot(
  values: readonly string[] | undefined,
  notValues: readonly string[] | undefined,
  matcher: (value: string) => Principal,
): Principal[] {
  return [
    ...(values ? [anyOfPrincipals(values.map(matcher))] : []),
    ...(notValues ? [{ identifier: { case: 'notId' as const, value: anyOfPrincipals(notValues.map(matcher)) } }] : []),
  ];
}
