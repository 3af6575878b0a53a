/** Who a bearer token is of: tokens of service accounts, signed by an issuer that is trusted (spec/discovery.md §7.7, JWT). */
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
import type { Authentication, Authenticator, Peer } from './authenticator.ts';
import { type KeysOf, KeysUnavailable } from './issuer-keys.ts';

export interface TokenRule {
  readonly issuer: string;
  /** At least one of these must be in the token; none: every token is rejected. */
  readonly audiences: readonly string[];
  readonly keys: KeysOf;
}

export interface BearerTokenOptions {
  /** For logs. */
  readonly name: string;
  readonly rule: TokenRule;
  /** Of the mesh, now: a token says nothing of it. */
  readonly trustDomain: () => string;
  readonly now?: () => Date;
  /** Whether a token was taken back, by its id. */
  readonly isRevoked?: (id: string) => boolean;
  /** A valid signature, but a start that is more than the leeway ahead: the clocks of the hosts differ. */
  readonly reportNotYetValid?: (report: NotYetValid) => void;
}

/** A token of which only the start is wrong. */
export interface NotYetValid {
  /** Name of the authenticator. */
  readonly authenticator: string;
  readonly issuer: string;
  /** Seconds from now to the start of the token. */
  readonly aheadSeconds: number;
}

/** Signatures by a key that only the issuer has: a token signed by a shared secret, or by nothing, is none. */
const algorithms = ['ES256', 'ES384', 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'EdDSA'];
/** A token of a service account has 1 KB; of others, with groups, some. */
const longestToken = 16 * 1024;
/**
 * Difference of clocks that `nbf` and `exp` may show. Kubernetes (`jwt.DefaultLeeway` of go-jose) and Envoy (`clock_skew_seconds`) allow
 * as much.
 */
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
      const shown = tokenOf(peer);
      if ('failure' in shown) return shown;
      if (rule.audiences.length === 0) return { failure: 'no accepted audience is configured' };
      const current = now();
      try {
        const { payload } = await verified(shown.token, rule, current);
        if (payload.jti !== undefined && isRevoked(payload.jti)) return { failure: 'the token is revoked' };
        return identityOfAccount(payload.sub, trustDomain());
      } catch (error) {
        const aheadSeconds = secondsUntilValid(error, current);
        if (aheadSeconds !== undefined) {
          reportNotYetValid?.({ authenticator: name, issuer: rule.issuer, aheadSeconds });
          return { failure: notYetValid(aheadSeconds) };
        }
        return { failure: messageOf(error), ...(error instanceof KeysUnavailable && { isUnavailable: true }) };
      }
    },
  };
}

/** @returns `undefined` if the token was rejected for another reason */
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

/** With the keys that are there, and once more with fresh ones when none of them fits. */
async function verified(token: string, { issuer, audiences, keys }: TokenRule, currentDate: Date) {
  const options = {
    ...{ issuer, audience: [...audiences], algorithms, currentDate, clockTolerance: clockLeewaySeconds },
    requiredClaims: ['exp', 'sub', 'iss', 'aud'],
  };
  // A header that says nothing of use must not lead to questions.
  decodeProtectedHeader(token);
  try {
    return await verifiedBy(await keys.get(), token, options);
  } catch (error) {
    if (!(error instanceof errors.JWKSNoMatchingKey) || !(await keys.refresh())) throw error;
    return verifiedBy(await keys.get(), token, options);
  }
}

/** A token need not name its key: then each that it may be is tried, as others do. */
async function verifiedBy(keys: JWTVerifyGetKey, token: string, options: JWTVerifyOptions): Promise<JWTVerifyResult> {
  try {
    return await jwtVerify(token, keys, options);
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    let refusal: unknown = error;
    for await (const key of error) {
      try {
        return await jwtVerify(token, key, options);
      } catch (reason) {
        if (!(reason instanceof errors.JWSSignatureVerificationFailed)) throw reason;
        refusal = reason;
      }
    }
    throw refusal;
  }
}

/** `authorization: Bearer …`, of several headers none counts. */
export function tokenOf({ metadata }: Peer): { readonly token: string } | { readonly failure: string } {
  const headers = metadata('authorization');
  const token = headers.length === 1 ? /^Bearer ([\w.-]+)$/.exec(headers[0]!)?.[1] : undefined;
  if (token === undefined) return { failure: 'no bearer token' };
  return token.length > longestToken
    ? { failure: `the token must have at most ${longestToken} characters, got ${token.length}` }
    : { token };
}

/** @param user as Kubernetes calls the account that a token is of */
export function identityOfAccount(user: unknown, trustDomain: string): Authentication {
  const account = serviceAccountNamed(user);
  if (account === undefined) return { failure: 'the subject of the token is not a service account' };
  return { identities: [spiffeUriOf({ trustDomain, ...account })] };
}

/** `system:serviceaccount:<namespace>:<account>`, in names as Kubernetes has them. */
function serviceAccountNamed(user: unknown): Omit<WorkloadIdentity, 'trustDomain'> | undefined {
  if (typeof user !== 'string') return undefined;
  const name = '[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?';
  const [, namespace, serviceAccount] =
    new RegExp(`^system:serviceaccount:(${name}):(${name})$`).exec(user.slice(0, 600)) ?? [];
  return namespace === undefined || serviceAccount === undefined ? undefined : { namespace, serviceAccount };
}
