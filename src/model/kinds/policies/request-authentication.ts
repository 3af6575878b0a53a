/** `security.istio.io` RequestAuthentication, decoded: which tokens requests may carry. */
import type { PolicyScope } from './policy-target.ts';

export interface RequestAuthentication extends PolicyScope {
  readonly jwtRules: readonly JwtRule[];
}

/** Keys of one issuer. It has a few, and each goes to every proxy that takes its tokens. */
export const mostKeys = 100;

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
