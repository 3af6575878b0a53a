/** Parses JWT_RULE: `{"issuer", "jwks_uri" | "jwks", "audiences"}`. */
import type { JSONWebKeySet } from 'jose';
import { ChartpilotError, messageOf } from '../../../runtime/errors.ts';
import { isObject } from '../../../runtime/json-object.ts';
import type { TokenRule } from './bearer-token.ts';
import { FetchedKeys, type IssuerKeys, localKeys } from './issuer-keys.ts';

/** @throws ChartpilotError FLAG_INVALID, because without the rule all clients would be rejected */
export function parseJwtRule(text: string): TokenRule {
  const rule = parseObject(text);
  const { issuer, audiences } = rule;
  if (typeof issuer !== 'string' || issuer === '') throw invalidRule('"issuer" must be a non-empty string');
  if (
    !Array.isArray(audiences) ||
    audiences.length === 0 ||
    !audiences.every((audience) => typeof audience === 'string')
  ) {
    throw invalidRule('"audiences" must be a list of strings with at least one entry');
  }
  return { issuer, audiences, keys: keysIn(rule, issuer) };
}

function keysIn(rule: Record<string, unknown>, issuer: string): IssuerKeys {
  // The JSON name and the field name of the proto are accepted.
  const uri = rule.jwks_uri ?? rule.jwksUri;
  const { jwks } = rule;
  if (jwks !== undefined) return inline(jwks);
  if (uri !== undefined && !isHttp(uri)) throw invalidRule('"jwks_uri" must be an http:// or https:// URL');
  if (isHttp(uri)) return new FetchedKeys({ address: { kind: 'keys', url: uri } });
  if (!isHttp(issuer))
    throw invalidRule(
      'set "jwks_uri" or "jwks": "issuer" is not an http:// or https:// URL, so its keys cannot be discovered',
    );
  return new FetchedKeys({ address: { kind: 'issuer', url: issuer } });
}

function inline(jwks: unknown): IssuerKeys {
  try {
    const keySet = (typeof jwks === 'string' ? JSON.parse(jwks) : jwks) as JSONWebKeySet;
    if (!isObject(keySet) || !Array.isArray(keySet.keys) || keySet.keys.length === 0) throw new Error('it has no keys');
    return localKeys(keySet);
  } catch (error) {
    throw invalidRule(`"jwks" is not a JSON Web Key Set: ${messageOf(error)}`);
  }
}

function isHttp(value: unknown): value is string {
  return typeof value === 'string' && /^https?:\/\//.test(value) && URL.canParse(value);
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // The error is thrown below.
  }
  throw invalidRule('must be a JSON object');
}

function invalidRule(message: string): ChartpilotError {
  return new ChartpilotError('FLAG_INVALID', `JWT_RULE: ${message}`, {
    hint: 'write it as {"issuer": "https://…", "jwks_uri": "https://…", "audiences": ["istio-ca"]}',
  });
}
