import type { PolicyScope } from './policy-target.ts';

export interface RequestAuthentication extends PolicyScope {
  readonly jwtRules: readonly JwtRule[];
}

/** Keys of one issuer. Real issuers have few, and every proxy that accepts its tokens receives all of them. */
export const maxKeys = 100;

/** Issuers of one object whose keys the control plane fetches. */
export const maxFetchedIssuers = 100;

/** Upper bound of `timeout` for a fetch, which occupies one of a few slots. */
export const maxFetchTimeoutMs = 30_000;

export interface JwtRule {
  readonly issuer: string;
  readonly audiences?: readonly string[];
  readonly jwksUri?: string;
  readonly jwks?: string;
  readonly fromHeaders?: readonly { readonly name: string; readonly prefix?: string }[];
  readonly fromParams?: readonly string[];
  readonly fromCookies?: readonly string[];
  readonly outputPayloadToHeader?: string;
  readonly outputClaimToHeaders?: readonly { readonly header: string; readonly claim: string }[];
  readonly forwardOriginalToken?: boolean;
  readonly timeoutMs?: number;
  readonly spaceDelimitedClaims?: readonly string[];
  /** Default OPTIONAL: a request without the token passes. */
  readonly presence?: 'OPTIONAL' | 'REQUIRED';
}
