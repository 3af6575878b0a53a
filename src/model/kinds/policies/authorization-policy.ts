/** `security.istio.io` AuthorizationPolicy, decoded: which requests are let through. */
import type { PolicyScope } from './policy-target.ts';

export interface AuthorizationPolicy extends PolicyScope {
  readonly action: 'ALLOW' | 'DENY' | 'AUDIT' | 'CUSTOM';
  /** None: no request matches. */
  readonly rules: readonly AuthorizationRule[];
  /** Name of one of the mesh's extension providers, with CUSTOM. */
  readonly provider?: string;
}

/** Matches a request that any `from`, any `to` and every `when` matches; what is absent matches all. */
export interface AuthorizationRule {
  readonly from?: readonly AuthorizationSource[];
  readonly to?: readonly AuthorizationOperation[];
  readonly when?: readonly AuthorizationCondition[];
}

type Texts = readonly string[];

/** `*` at one end of a text matches anything there. */
export interface AuthorizationSource {
  readonly principals?: Texts;
  readonly notPrincipals?: Texts;
  readonly requestPrincipals?: Texts;
  readonly notRequestPrincipals?: Texts;
  readonly namespaces?: Texts;
  readonly notNamespaces?: Texts;
  /** `name` in the policy's own namespace, or `namespace/name`. */
  readonly serviceAccounts?: Texts;
  readonly notServiceAccounts?: Texts;
  readonly trustDomains?: Texts;
  readonly notTrustDomains?: Texts;
  /** Addresses of the connection's peer. */
  readonly ipBlocks?: Texts;
  readonly notIpBlocks?: Texts;
  /** Addresses of the client, as trusted headers say it. */
  readonly remoteIpBlocks?: Texts;
  readonly notRemoteIpBlocks?: Texts;
}

export interface AuthorizationOperation {
  readonly hosts?: Texts;
  readonly notHosts?: Texts;
  readonly ports?: Texts;
  readonly notPorts?: Texts;
  readonly methods?: Texts;
  readonly notMethods?: Texts;
  /** Paths, with `{*}` for a segment and `{**}` for several, or with `*` at one end. */
  readonly paths?: Texts;
  readonly notPaths?: Texts;
}

export interface AuthorizationCondition {
  readonly key: string;
  readonly values?: Texts;
  readonly notValues?: Texts;
}
