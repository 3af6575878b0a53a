/** Asks an issuer of tokens for its keys (RFC 7517), by their address or by OpenID Connect Discovery. */
import { mostKeys } from '../../model/kinds/policies/request-authentication.ts';
import { boundedText } from '../../runtime/fences/bounded-text.ts';
import type { Fetch } from '../../runtime/fences/guarded-fetch.ts';
import { isObject } from '../../runtime/json-object.ts';
import { inOrder } from './key-order.ts';

/** Where a key set is: its own address, or its issuer, whose metadata says it. */
export interface KeyAddress {
  readonly kind: 'keys' | 'issuer';
  readonly url: string;
}

export interface FetchOptions {
  /** Limit of the whole request. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly fetch: Fetch;
}

/** Issuers have a few keys; who sends more than this is none. */
const maxBytes = 1024 * 1024;

/**
 * @returns the key set as text, the same for the same keys in whatever order
 * @throws Error with what to tell people
 */
export async function fetchKeySet({ kind, url }: KeyAddress, options: FetchOptions): Promise<string> {
  const timeout = AbortSignal.timeout(options.timeoutMs);
  const ask = (address: string): Promise<unknown> =>
    readJson(address, { ...options, signal: AbortSignal.any([options.signal, timeout]) });
  try {
    const answer = await ask(kind === 'keys' ? url : keysOfIssuer(await ask(discoveryUrl(url)), url));
    if (!isObject(answer) || !Array.isArray(answer.keys)) throw new Error('the answer is no JSON Web Key Set');
    const keys = answer.keys.filter((key) => isObject(key) && typeof key.kty === 'string');
    // With no key Envoy would refuse every token: the keys from before are better.
    if (keys.length === 0) throw new Error('the answer has no key in it');
    if (keys.length > mostKeys)
      throw new Error(`the answer has ${keys.length} keys, of which no issuer needs more than ${mostKeys}`);
    return inOrder(keys);
  } catch (error) {
    if (timeout.aborted) throw new Error(`no answer within ${options.timeoutMs} ms`);
    throw error;
  }
}

async function readJson(url: string, { fetch, signal }: FetchOptions): Promise<unknown> {
  const response = await fetch(url, { signal, headers: { accept: 'application/json' } });
  if (!response.ok) throw new Error(`the answer is HTTP status ${response.status}`);
  const text = await boundedText(response.body ?? [], maxBytes);
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('the answer is no JSON');
  }
}

function discoveryUrl(issuer: string): string {
  if (!/^https?:\/\//.test(issuer)) {
    throw new Error('the issuer is no URL, so its keys must be given: jwks or jwksUri');
  }
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
}

function keysOfIssuer(metadata: unknown, issuer: string): string {
  const uri = isObject(metadata) ? metadata.jwks_uri : undefined;
  if (typeof uri !== 'string' || !/^https?:\/\//.test(uri))
    throw new Error(`${issuer} does not say where its keys are`);
  return uri;
}
