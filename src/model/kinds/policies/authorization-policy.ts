import type { PolicyScope } from './policy-target.ts';

export interface AuthorizationPolicy extends PolicyScope {
  readonly action: 'ALLOW' | 'DENY' | 'AUDIT' | 'CUSTOM';
  /** If empty, the policy matches no request. */
  readonly rules: readonly AuthorizationRule[];
  readonly provider?: string;
}

/** Matches a request if any `from`, any `to` and every `when` match. An absent part matches all requests. */
export interface AuthorizationRule {
  readonly from?: readonly AuthorizationSource[];
  readonly to?: readonly AuthorizationOperation[];
  readonly when?: readonly AuthorizationCondition[];
}

type Texts = readonly string[];

/** A `*` at one end of a value is a wildcard. */
export interface AuthorizationSource {
  readonly principals?: Texts;
  readonly notPrincipals?: Texts;
  readonly requestPrincipals?: Texts;
  readonly notRequestPrincipals?: Texts;
  readonly namespaces?: Texts;
  readonly notNamespaces?: Texts;
  /** `name` in the policy's namespace, or `namespace/name`. */
  readonly serviceAccounts?: Texts;
  readonly notServiceAccounts?: Texts;
  readonly trustDomains?: Texts;
  readonly notTrustDomains?: Texts;
  readonly ipBlocks?: Texts;
  readonly notIpBlocks?: Texts;
  /** Client addresses taken from trusted headers. */
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
  /** Paths. `{*}` matches one segment, `{**}` several; `*` is allowed at one end. */
  readonly paths?: Texts;
  readonly notPaths?: Texts;
}

export interface AuthorizationCondition {
  readonly key: string;
  readonly values?: Texts;
  readonly notValues?: Texts;
}
