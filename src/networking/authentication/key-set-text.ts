/**
 * Converts the key set of a JWT rule to a form that Envoy accepts. Envoy 1.40 ignores unusable keys, but rejects the listener if an issuer has no
 * usable key (measured: "invalid local jwks").
 */

import { createPublicKey, type JsonWebKey } from 'node:crypto';
import type { JwtRule } from '../../model/kinds/policies/request-authentication.ts';
import { ownValue } from '../../runtime/json-object.ts';
import { unknownKey } from './unknown-key.ts';

const cachedTexts = new WeakMap<JwtRule, string>();

/** If no key is usable with certainty, the result also contains {@link unknownKey}. */
export function keySetText(rule: JwtRule): string {
  let text = cachedTexts.get(rule);
  if (text === undefined) {
    const keys = keysOf(rule.jwks);
    text = JSON.stringify({ keys: keys.some(isUsableByEnvoy) ? keys : [...keys, unknownKey] });
    cachedTexts.set(rule, text);
  }
  return text;
}

/** The JWK members that Envoy reads. */
const knownMembers = new Set(['kty', 'alg', 'use', 'kid', 'n', 'e', 'crv', 'x', 'y', 'k']);
/** Maximum length; a modulus of 16,384 bits has 2,731 characters. */
const maxMemberLength = 8_192;

/** Removes JWK members that have no effect in Envoy. */
function keysOf(jwks: string | undefined): JsonWebKey[] {
  if (jwks === undefined) return [];
  // The text was validated when it was received.
  const { keys } = JSON.parse(jwks) as { keys: unknown[] };
  return keys.flatMap((key) => {
    if (typeof key !== 'object' || key === null) return [];
    const keyMembers = Object.entries(key as Record<string, unknown>).filter(
      (member): member is [string, string] =>
        knownMembers.has(member[0]) && typeof member[1] === 'string' && hasNoLoneSurrogates(member[1]),
    );
    return keyMembers.every(([, value]) => value.length <= maxMemberLength) ? [Object.fromEntries(keyMembers)] : [];
  });
}

/** Protobuf strings cannot contain lone surrogates. */
function hasNoLoneSurrogates(text: string): boolean {
  return text.isWellFormed();
}

const base64url = /^[\w-]+$/;

/** Envoy rejects a key whose algorithm does not fit its curve. */
const algorithms: Readonly<Record<string, string>> = { 'P-256': 'ES256', 'P-384': 'ES384', 'P-521': 'ES512' };

function isUsableByEnvoy(key: JsonWebKey): boolean {
  const { kty, crv = '', alg } = key;
  if (kty !== 'RSA' && kty !== 'EC') return false;
  const algorithm = ownValue(algorithms, crv);
  if (kty === 'EC' && (algorithm === undefined || (alg ?? algorithm) !== algorithm)) return false;
  const numbers = kty === 'RSA' ? [key.n, key.e] : [key.x, key.y];
  if (numbers.some((number) => number === undefined || !base64url.test(number))) return false;
  // Envoy also rejects a small modulus and an exponent of 1.
  if (kty === 'RSA' && (key.n!.length < 340 || (key.e !== 'AQAB' && key.e !== 'Aw'))) return false;
  try {
    createPublicKey({ key, format: 'jwk' });
    return true;
  } catch {
    return false;
  }
}
