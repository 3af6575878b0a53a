/** The key set (RFC 7517) has its own URL, or is found through OpenID Connect Discovery. */
import { maxKeys } from '../../model/kinds/policies/request-authentication.ts';
import { CodedError, messageOf, reasonError } from '../../runtime/errors.ts';
import { boundedText } from '../../runtime/fences/bounded-text.ts';
import type { Fetch } from '../../runtime/fences/guarded-fetch.ts';
import { isObject } from '../../runtime/json-object.ts';
import { sortedKeySet } from './key-order.ts';

export interface KeyAddress {
  readonly kind: 'keys' | 'issuer';
  readonly url: string;
}

export interface FetchOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly fetch: Fetch;
}

/** An issuer has only a few keys. */
const maxBytes = 1024 * 1024;

/**
 * @returns the key set as text, independent of the order of keys
 * @throws CodedError KEY_SET_UNAVAILABLE
 */
export async function fetchKeySet({ kind, url }: KeyAddress, options: FetchOptions): Promise<string> {
  const timeout = AbortSignal.timeout(options.timeoutMs);
  const fetchJson = (address: string): Promise<unknown> =>
    readJson(address, { ...options, signal: AbortSignal.any([options.signal, timeout]) });
  try {
    const keySet = await fetchJson(kind === 'keys' ? url : keysOfIssuer(await fetchJson(discoveryUrl(url)), url));
    if (!isObject(keySet) || !Array.isArray(keySet.keys)) throw unavailableError('response must be a JSON Web Key Set');
    const keys = keySet.keys.filter((key) => isObject(key) && typeof key.kty === 'string');
    // An empty key set is a failure, so that the previous keys are kept. Without keys, Envoy would reject every token.
    if (keys.length === 0) throw unavailableError('the JSON Web Key Set has no keys');
    if (keys.length > maxKeys)
      throw unavailableError(`the JSON Web Key Set must have at most ${maxKeys} keys, got ${keys.length}`);
    return sortedKeySet(keys);
  } catch (error) {
    if (timeout.aborted) throw unavailableError(`no response within ${options.timeoutMs} ms`);
    throw unavailableError(messageOf(error), error);
  }
}

function unavailableError(text: string, cause?: unknown): CodedError {
  return cause instanceof CodedError ? cause : reasonError('KEY_SET_UNAVAILABLE', text, { cause });
}

async function readJson(url: string, { fetch, signal }: FetchOptions): Promise<unknown> {
  const response = await fetch(url, { signal, headers: { accept: 'application/json' } });
  if (!response.ok) throw unavailableError(`HTTP status ${response.status}`);
  const text = await boundedText(response.body ?? [], maxBytes);
  try {
    return JSON.parse(text);
  } catch {
    throw unavailableError('response must be JSON');
  }
}

function discoveryUrl(issuer: string): string {
  if (!/^https?:\/\//.test(issuer)) {
    throw unavailableError(
      'set jwks or jwksUri: the issuer is not an http:// or https:// URL, so its keys cannot be discovered',
    );
  }
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
}

function keysOfIssuer(metadata: unknown, issuer: string): string {
  const uri = isObject(metadata) ? metadata.jwks_uri : undefined;
  if (typeof uri !== 'string' || !/^https?:\/\//.test(uri))
    throw unavailableError(`the OpenID configuration of ${issuer} has no jwks_uri`);
  return uri;
}
