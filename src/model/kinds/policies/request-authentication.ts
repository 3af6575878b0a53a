/** `security.istio.io` RequestAuthentication, decoded: which tokens requests may carry. */
import type { PolicyScope } from './policy-target.ts';

export interface RequestAuthentication extends PolicyScope {
  readonly jwtRules: readonly JwtRule[];
}

/** Keys of one issuer. It has a few, and each goes to every proxy that takes its tokens. */
export const mostKeys = 100;

/** Issuers of one object whose keys the control plane fetches. */
export const maxFetchedIssuers = 100;

/** For an answer of an issuer, whatever `timeout` is longer. A fetch occupies one of a few slots until then. */
export const maxFetchTimeoutMs = 30_000;

export interface JwtRule {
  readonly issuer: string;
  readonly audiences?: readonly string[];
  readonly jwksUri?: string;
  /** A JSON Web Key Set. */
  readonly jwks?: string;
  readonly fromHeaders?: readonly { readonly name: string; readonly prefix?: string }[];
  readonly fromParams?: readonly string[];
  readonly fromCookies?: readonly string[];
  readonly outputPayloadToHeader?: string;
  readonly outputClaimToHeaders?: readonly { readonly header: string; readonly claim: string }[];
  readonly forwardOriginalToken?: boolean;
  readonly timeoutMs?: number;
  readonly spaceDelimitedClaims?: readonly string[];
  /** Absent: OPTIONAL, so that a request without the token passes. */
  readonly presence?: 'OPTIONAL' | 'REQUIRED';
}
