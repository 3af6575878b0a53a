import { createPublicKey, type JsonWebKey, type KeyObject, verify } from 'node:crypto';
import type { JwtProvider } from '../../../gen/envoy/extensions/filters/http/jwt_authn/v3/config_pb.ts';
import { isObject } from '../../../runtime/json-object.ts';
import { unknownKey } from '../../authentication/unknown-key.ts';
import { UndecidedError } from './filter-result.ts';

export interface VerifyOptions {
  readonly nowMs: number;
  readonly lacksFetchedKeys: boolean;
}

export interface JsonWebToken {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly signedText: string;
  readonly signature: Buffer;
}

export interface VerifiedToken {
  readonly provider: JwtProvider;
  readonly text: string;
  readonly claims: JsonWebToken['claims'];
}

export type TokenError =
  | 'missing'
  | 'malformed'
  | 'of an unknown issuer'
  | 'not valid yet'
  | 'expired'
  | 'for another audience'
  | 'not signed by a key of the provider';

export function parseToken(text: string): JsonWebToken | undefined {
  const segments = text.split('.');
  const [headerSegment, payload, signature] = segments;
  if (segments.length !== 3 || headerSegment === undefined || payload === undefined || signature === undefined)
    return undefined;
  const [header, claims] = [jsonOf(headerSegment), jsonOf(payload)];
  if (header === undefined || claims === undefined || !(String(header.alg) in algorithms)) return undefined;
  const timeClaims = [claims.exp, claims.nbf, claims.iat];
  if (timeClaims.some((time) => time !== undefined && typeof time !== 'number')) return undefined;
  return { header, claims, signedText: `${headerSegment}.${payload}`, signature: Buffer.from(signature, 'base64url') };
}

function jsonOf(base64: string): Readonly<Record<string, unknown>> | undefined {
  if (!/^[\w-]+$/.test(base64)) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(base64, 'base64url').toString());
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const defaultClockSkewS = 60;

/** Validates in the order of Envoy's jwt_authn filter. */
export function tokenError(
  { header, claims, signedText, signature }: JsonWebToken,
  provider: JwtProvider,
  { nowMs, lacksFetchedKeys }: VerifyOptions,
): TokenError | undefined {
  const nowSeconds = nowMs / 1_000;
  const skewS = provider.clockSkewSeconds || defaultClockSkewS;
  if (typeof claims.nbf === 'number' && claims.nbf > nowSeconds + skewS) return 'not valid yet';
  if (typeof claims.exp === 'number' && nowSeconds > claims.exp + skewS) return 'expired';
  if (!isForAudience(claims.aud, provider.audiences)) return 'for another audience';
  const algorithm = algorithms[String(header.alg)]!;
  const providerKeys = keysOf(provider);
  if (lacksFetchedKeys && providerKeys.some(({ n }) => n === unknownKey.n)) {
    throw new UndecidedError(
      `the keys of issuer ${provider.issuer} must be fetched from its jwksUri; query a control plane with --from`,
    );
  }
  const keys = providerKeys.filter(
    ({ kid, alg, kty }) =>
      (header.kid === undefined || kid === undefined || kid === header.kid) &&
      (alg === undefined || alg === header.alg) &&
      kty === algorithm.kty,
  );
  const hasValidSignature = keys.some((key) => isSignedBy(publicKeyOf(key), algorithm, signedText, signature));
  return hasValidSignature ? undefined : 'not signed by a key of the provider';
}

function isForAudience(tokenAudience: unknown, allowedAudiences: readonly string[]): boolean {
  if (allowedAudiences.length === 0) return true;
  const audiences = Array.isArray(tokenAudience) ? tokenAudience : tokenAudience === undefined ? [] : [tokenAudience];
  return audiences.some((audience) =>
    allowedAudiences.some(
      (allowedAudience) => normalizedAudience(String(audience)) === normalizedAudience(allowedAudience),
    ),
  );
}

/** Removes scheme and trailing slash, which Envoy ignores in audiences. */
function normalizedAudience(audience: string): string {
  return audience.replace(/^https?:\/\//, '').replace(/\/$/, '');
}

function keysOf({ jwksSourceSpecifier: source }: JwtProvider): readonly JsonWebKey[] {
  const text = source.case === 'localJwks' ? source.value.specifier : undefined;
  if (text?.case !== 'inlineString') throw new UndecidedError("the provider's keys are not in the configuration");
  const set: unknown = JSON.parse(text.value);
  return isObject(set) && Array.isArray(set.keys) ? (set.keys as JsonWebKey[]) : [];
}

function publicKeyOf(key: JsonWebKey): KeyObject | undefined {
  try {
    return createPublicKey({ key, format: 'jwk' });
  } catch {
    return undefined;
  }
}

interface Algorithm {
  readonly kty: 'EC' | 'RSA' | 'OKP';
  readonly hash: string | undefined;
  readonly padding?: 'pss';
}

const algorithms: Readonly<Record<string, Algorithm>> = {
  ES256: { kty: 'EC', hash: 'sha256' },
  ES384: { kty: 'EC', hash: 'sha384' },
  ES512: { kty: 'EC', hash: 'sha512' },
  RS256: { kty: 'RSA', hash: 'sha256' },
  RS384: { kty: 'RSA', hash: 'sha384' },
  RS512: { kty: 'RSA', hash: 'sha512' },
  PS256: { kty: 'RSA', hash: 'sha256', padding: 'pss' },
  PS384: { kty: 'RSA', hash: 'sha384', padding: 'pss' },
  PS512: { kty: 'RSA', hash: 'sha512', padding: 'pss' },
  EdDSA: { kty: 'OKP', hash: undefined },
};

const pssPadding = 6;

function isSignedBy(
  key: KeyObject | undefined,
  { hash, padding, kty }: Algorithm,
  text: string,
  signature: Buffer,
): boolean {
  if (key === undefined) return false;
  const options = {
    key,
    ...(kty === 'EC' && { dsaEncoding: 'ieee-p1363' as const }),
    ...(padding === 'pss' && { padding: pssPadding }),
  };
  return verify(hash ?? null, Buffer.from(text), options, signature);
}
