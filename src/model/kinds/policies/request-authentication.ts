import type { PolicyScope } from './policy-target.ts';

export interface RequestAuthentication extends PolicyScope {
  readonly jwtRules: readonly JwtRule[];
}

/** Real issuers have few keys, and every proxy that accepts their tokens receives all of them. */
export const maxKeys = 100;

export const maxFetchedIssuers = 100;

/** Maximum `timeout` of a fetch, which occupies one of a few slots. */
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
  /** Default OPTIONAL, with which a request without the token passes. */
  readonly presence?: 'OPTIONAL' | 'REQUIRED';
}
