/**
 * The key set of a rule as Envoy takes it. Envoy 1.40 leaves out keys that it cannot use, and refuses the whole listener
 * when none is left (seen: "invalid local jwks"), be it for the mistake of an issuer far away.
 */

import { createPublicKey, type JsonWebKey } from 'node:crypto';
import type { JwtRule } from '../../model/kinds/policies/request-authentication.ts';
import { ownValue } from '../../runtime/json-object.ts';
import { unknownKey } from './unknown-key.ts';

const texts = new WeakMap<JwtRule, string>();

/**
 * The rule's keys, or one whose tokens nobody can make. That one stands beside the others as well unless one of them is
 * of use for certain.
 */
export function keySetText(rule: JwtRule): string {
  let text = texts.get(rule);
  if (text === undefined) {
    const keys = keysOf(rule.jwks);
    text = JSON.stringify({ keys: keys.some(isOfUse) ? keys : [...keys, unknownKey] });
    texts.set(rule, text);
  }
  return text;
}

/** What Envoy reads of a key. */
const members = new Set(['kty', 'alg', 'use', 'kid', 'n', 'e', 'crv', 'x', 'y', 'k']);
/** Characters of one of them: a modulus of 16,384 bits has 2,731. */
const longestMember = 8_192;

/** All else, and what is no text, means nothing to Envoy, and would be sent to every proxy. A key with a longer member is none. */
function keysOf(jwks: string | undefined): JsonWebKey[] {
  if (jwks === undefined) return [];
  // The text was read when it came: as an object of the mesh, or from its issuer.
  const { keys } = JSON.parse(jwks) as { keys: unknown[] };
  return keys.flatMap((key) => {
    if (typeof key !== 'object' || key === null) return [];
    const read = Object.entries(key as Record<string, unknown>).filter(
      (member): member is [string, string] =>
        members.has(member[0]) && typeof member[1] === 'string' && isPlain(member[1]),
    );
    return read.every(([, value]) => value.length <= longestMember) ? [Object.fromEntries(read)] : [];
  });
}

/** Half of a character outside of Unicode's first plane is nothing that a protobuf may carry. */
function isPlain(text: string): boolean {
  return text.isWellFormed();
}

const base64url = /^[\w-]+$/;

/** Envoy refuses a curve with the algorithm of another. */
const algorithms: Readonly<Record<string, string>> = { 'P-256': 'ES256', 'P-384': 'ES384', 'P-521': 'ES512' };

/** False where that is not certain. */
function isOfUse(key: JsonWebKey): boolean {
  const { kty, crv = '', alg } = key;
  if (kty !== 'RSA' && kty !== 'EC') return false;
  const algorithm = ownValue(algorithms, crv);
  if (kty === 'EC' && (algorithm === undefined || (alg ?? algorithm) !== algorithm)) return false;
  const numbers = kty === 'RSA' ? [key.n, key.e] : [key.x, key.y];
  if (numbers.some((number) => number === undefined || !base64url.test(number))) return false;
  // A modulus of a few bits, or an exponent of 1, is refused as well.
  if (kty === 'RSA' && (key.n!.length < 340 || (key.e !== 'AQAB' && key.e !== 'Aw'))) return false;
  try {
    createPublicKey({ key, format: 'jwk' });
    return true;
  } catch {
    return false;
  }
}
