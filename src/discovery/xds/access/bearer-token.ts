import {
  decodeProtectedHeader,
  errors,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  type JWTVerifyResult,
  jwtVerify,
} from 'jose';
import { spiffeUriOf, type WorkloadIdentity } from '../../../identity/spiffe-id.ts';
import { messageOf } from '../../../runtime/errors.ts';
import type { Authentication, Authenticator, CallPeer } from './authenticator.ts';
import { type IssuerKeys, KeysUnavailableError } from './issuer-keys.ts';

export interface TokenRule {
  readonly issuer: string;
  /** A token must contain at least one of these. */
  readonly audiences: readonly string[];
  readonly keys: IssuerKeys;
}

export interface BearerTokenOptions {
  readonly name: string;
  readonly rule: TokenRule;
  /** Tokens contain no trust domain, so that of the mesh applies. */
  readonly trustDomain: () => string;
  readonly now?: () => Date;
  readonly isRevoked?: (id: string) => boolean;
  /** Called for a valid token whose start is so far in the future that clocks must differ. */
  readonly reportNotYetValid?: (report: NotYetValidToken) => void;
}

export interface NotYetValidToken {
  readonly authenticator: string;
  readonly issuer: string;
  readonly aheadSeconds: number;
}

/** Only asymmetric signatures are accepted. */
const algorithms = ['ES256', 'ES384', 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'EdDSA'];
/** Service account tokens have about 1 KB; tokens with groups are longer. */
const maxTokenLength = 16 * 1024;
/** Clock difference for `nbf` and `exp`, as in Kubernetes (`jwt.DefaultLeeway` of go-jose) and Envoy (`clock_skew_seconds`). */
export const clockLeewaySeconds = 60;

export function bearerToken({
  name,
  rule,
  trustDomain,
  now = () => new Date(),
  isRevoked = () => false,
  reportNotYetValid,
}: BearerTokenOptions): Authenticator {
  return {
    name,
    async authenticate(peer): Promise<Authentication> {
      const bearerToken = tokenOf(peer);
      if ('failure' in bearerToken) return bearerToken;
      if (rule.audiences.length === 0) return { failure: 'no accepted audience is configured' };
      const current = now();
      try {
        const { payload } = await verifyToken(bearerToken.token, rule, current);
        if (payload.jti !== undefined && isRevoked(payload.jti)) return { failure: 'the token is revoked' };
        return identityOfAccount(payload.sub, trustDomain());
      } catch (error) {
        const aheadSeconds = secondsUntilValid(error, current);
        if (aheadSeconds !== undefined) {
          reportNotYetValid?.({ authenticator: name, issuer: rule.issuer, aheadSeconds });
          return { failure: notYetValid(aheadSeconds) };
        }
        return { failure: messageOf(error), ...(error instanceof KeysUnavailableError && { isUnavailable: true }) };
      }
    },
  };
}

/** @returns `undefined` if there is another reason for the rejection */
function secondsUntilValid(error: unknown, now: Date): number | undefined {
  if (!(error instanceof errors.JWTClaimValidationFailed) || error.claim !== 'nbf') return undefined;
  const { nbf } = error.payload;
  return error.reason === 'check_failed' && nbf !== undefined ? nbf - Math.floor(now.getTime() / 1000) : undefined;
}

function notYetValid(aheadSeconds: number): string {
  return (
    `the token is valid in ${aheadSeconds} s (\`nbf\`), more than the leeway of ${clockLeewaySeconds} s: ` +
    'check the clocks of this host and of the issuer'
  );
}

/** Refreshes the keys and retries once if no key matches. */
async function verifyToken(token: string, { issuer, audiences, keys }: TokenRule, currentDate: Date) {
  const options = {
    ...{ issuer, audience: [...audiences], algorithms, currentDate, clockTolerance: clockLeewaySeconds },
    requiredClaims: ['exp', 'sub', 'iss', 'aud'],
  };
  // An invalid header must not cause requests to the issuer.
  decodeProtectedHeader(token);
  try {
    return await verifyWith(await keys.get(), token, options);
  } catch (error) {
    if (!(error instanceof errors.JWKSNoMatchingKey) || !(await keys.refresh())) throw error;
    return verifyWith(await keys.get(), token, options);
  }
}

/** Verifies a token without a key ID with each suitable key. */
async function verifyWith(keys: JWTVerifyGetKey, token: string, options: JWTVerifyOptions): Promise<JWTVerifyResult> {
  try {
    return await jwtVerify(token, keys, options);
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    let verificationError: unknown = error;
    for await (const key of error) {
      try {
        return await jwtVerify(token, key, options);
      } catch (reason) {
        if (!(reason instanceof errors.JWSSignatureVerificationFailed)) throw reason;
        verificationError = reason;
      }
    }
    throw verificationError;
  }
}

/** Several headers are rejected. */
export function tokenOf({ metadata }: CallPeer): { readonly token: string } | { readonly failure: string } {
  const headers = metadata('authorization');
  const token = headers.length === 1 ? /^Bearer ([\w.-]+)$/.exec(headers[0]!)?.[1] : undefined;
  if (token === undefined) return { failure: 'no bearer token' };
  return token.length > maxTokenLength
    ? { failure: `the token must have at most ${maxTokenLength} characters, got ${token.length}` }
    : { token };
}

/** @param user Kubernetes user name */
export function identityOfAccount(user: unknown, trustDomain: string): Authentication {
  const account = serviceAccountNamed(user);
  if (account === undefined) return { failure: 'the subject of the token is not a service account' };
  return { identities: [spiffeUriOf({ trustDomain, ...account })] };
}

/** `system:serviceaccount:<namespace>:<account>` with valid Kubernetes names. */
function serviceAccountNamed(user: unknown): Omit<WorkloadIdentity, 'trustDomain'> | undefined {
  if (typeof user !== 'string') return undefined;
  const name = '[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?';
  const [, namespace, serviceAccount] =
    new RegExp(`^system:serviceaccount:(${name}):(${name})$`).exec(user.slice(0, 600)) ?? [];
  return namespace === undefined || serviceAccount === undefined ? undefined : { namespace, serviceAccount };
}
