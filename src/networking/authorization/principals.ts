import type { PrincipalSchema } from '../../gen/envoy/config/rbac/v3/rbac_pb.ts';
import type { AuthorizationSource } from '../../model/kinds/policies/authorization-policy.ts';
import { cidrRange } from '../messages/address.ts';
import type { Init } from '../messages/init.ts';
import { type MetadataMatch, requestPrincipalMatchers } from './claim-matchers.ts';
import { applicablePairs, type FieldPair, usesRequestFields } from './field-pairs.ts';
import { principalsInAllTrustDomains } from './principal-trust-domains.ts';
import { regexMatcher, regexOf, type TextMatcher, textMatcher } from './text-matcher.ts';

export type RbacPrincipal = Init<typeof PrincipalSchema>;

export interface RuleContext {
  readonly namespace: string;
  /** The mesh's own trust domain, then its aliases. */
  readonly trustDomains: readonly string[];
}

export type PrincipalBuilder = (value: string, context: RuleContext) => RbacPrincipal;

const scheme = 'spiffe://';

const anyPrincipal: RbacPrincipal = { identifier: { case: 'any', value: true } };
export const noPrincipal: RbacPrincipal = { identifier: { case: 'notId', value: anyPrincipal } };

function anyOfPrincipals(ids: readonly RbacPrincipal[]): RbacPrincipal {
  if (ids.length === 0) return noPrincipal;
  return ids.length === 1 ? ids[0]! : { identifier: { case: 'orIds', value: { ids: [...ids] } } };
}

export function allOfPrincipals(ids: readonly RbacPrincipal[]): RbacPrincipal {
  if (ids.length === 0) return anyPrincipal;
  return ids.length === 1 ? ids[0]! : { identifier: { case: 'andIds', value: { ids: [...ids] } } };
}

export const certifiedPrincipal: PrincipalBuilder = (value, { trustDomains }) =>
  anyOfPrincipals(
    principalsInAllTrustDomains(value, trustDomains).map((principal) =>
      // A leading `*` also matches the scheme.
      authenticatedPrincipal(textMatcher(principal.startsWith('*') ? principal : `${scheme}${principal}`)),
    ),
  );

export const certifiedNamespace: PrincipalBuilder = (value) =>
  authenticatedPrincipal(regexMatcher(`.*/ns/${regexOf(value, '.*')}/.*`));

/** Matches `account` in the policy's namespace, or `namespace/account`. The identity may contain additional segments. */
export const certifiedAccount: PrincipalBuilder = (value, context) => {
  const [namespace, account] = value.includes('/') ? value.split('/') : [context.namespace, value];
  const segmentPattern = (text = ''): string => regexOf(text, '[^/]+');
  return authenticatedPrincipal(
    regexMatcher(`${scheme}.+/ns/${segmentPattern(namespace)}/(.+/)?sa/${segmentPattern(account)}(/.+)?`),
  );
};

export const certifiedDomain: PrincipalBuilder = (value, { trustDomains }) =>
  anyOfPrincipals(
    // As for principals, all trust domains of the mesh are equivalent.
    principalsInAllTrustDomains(`${value}/`, trustDomains).map((domain) =>
      authenticatedPrincipal(regexMatcher(`${scheme}${regexOf(domain, '[^/]*')}.*`)),
    ),
  );

export const peerAddress: PrincipalBuilder = (value) => ({
  identifier: { case: 'directRemoteIp', value: cidrRange(value)! },
});

export const clientAddress: PrincipalBuilder = (value) => ({
  identifier: { case: 'remoteIp', value: cidrRange(value)! },
});

export const tokenPrincipal: PrincipalBuilder = (value) =>
  anyOfPrincipals(requestPrincipalMatchers(value).map((matchers) => allOfPrincipals(matchers.map(metadataPrincipal))));

export function metadataPrincipal(value: MetadataMatch): RbacPrincipal {
  return { identifier: { case: 'sourcedMetadata', value: { metadataMatcher: value } } };
}

function authenticatedPrincipal(principalName: TextMatcher): RbacPrincipal {
  return { identifier: { case: 'authenticated', value: { principalName } } };
}

const fields: readonly FieldPair<AuthorizationSource, PrincipalBuilder>[] = [
  { allowedField: 'principals', excludedField: 'notPrincipals', matcher: certifiedPrincipal },
  {
    allowedField: 'requestPrincipals',
    excludedField: 'notRequestPrincipals',
    matcher: tokenPrincipal,
    needsHttp: true,
  },
  { allowedField: 'namespaces', excludedField: 'notNamespaces', matcher: certifiedNamespace },
  { allowedField: 'serviceAccounts', excludedField: 'notServiceAccounts', matcher: certifiedAccount },
  { allowedField: 'trustDomains', excludedField: 'notTrustDomains', matcher: certifiedDomain },
  { allowedField: 'ipBlocks', excludedField: 'notIpBlocks', matcher: peerAddress },
  { allowedField: 'remoteIpBlocks', excludedField: 'notRemoteIpBlocks', matcher: clientAddress },
];

/**
 * All returned principals must match.
 *
 * @param http if `false`, HTTP fields are omitted
 */
export function sourcePrincipals(source: AuthorizationSource, context: RuleContext, http: boolean): RbacPrincipal[] {
  return applicablePairs(fields, http).flatMap(({ allowedField, excludedField, matcher }) =>
    includedAndExcluded(source[allowedField], source[excludedField], (value) => matcher(value, context)),
  );
}

export function usesRequestSource(source: AuthorizationSource): boolean {
  return usesRequestFields(source, fields);
}

export function includedAndExcluded(
  values: readonly string[] | undefined,
  notValues: readonly string[] | undefined,
  matcher: (value: string) => RbacPrincipal,
): RbacPrincipal[] {
  return [
    ...(values ? [anyOfPrincipals(values.map(matcher))] : []),
    ...(notValues ? [{ identifier: { case: 'notId' as const, value: anyOfPrincipals(notValues.map(matcher)) } }] : []),
  ];
}
