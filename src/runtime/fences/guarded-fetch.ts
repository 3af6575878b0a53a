/** HTTP GET for URLs in configuration objects. Connects to the resolved address that was checked, so that a second DNS response cannot replace it. */

import { type LookupAddress, lookup as systemLookup } from 'node:dns';
import { get as getPlain, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { RequestOptions as TlsRequestOptions } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { hostOfUrl } from '../addresses/url-host.ts';
import type { BlockedAddresses } from './blocked-addresses.ts';
import { rejectUpgrade } from './other-protocol.ts';

export interface FetchedResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly body: AsyncIterable<Uint8Array> | null;
}

interface FetchInit {
  readonly signal: AbortSignal;
  readonly headers: Readonly<Record<string, string>>;
}

export type Fetch = (url: string, init: FetchInit) => Promise<FetchedResponse>;

export interface GuardedResponse extends FetchedResponse {
  readonly headers: Readonly<IncomingHttpHeaders>;
}

/** `authorization` is never sent to another origin after a redirect. */
export type GuardedFetch = (url: string, init: FetchInit) => Promise<GuardedResponse>;

export type Lookup = (
  hostname: string,
  options: { readonly all: true },
  callback: (error: Error | null, addresses: LookupAddress[]) => void,
) => void;

export interface GuardOptions {
  /** Every address is permitted for this host name, which the operator configured. */
  readonly trustedHost?: string;
  /** Default: the resolver of the system. */
  readonly lookup?: Lookup;
  /** Default 3. */
  readonly maxRedirects?: number;
  /**
   * Whether the certificate of a host (`name` or `name:port`) is not verified (default: every certificate is verified).
   */
  readonly isInsecure?: (host: string) => boolean;
}

const defaultMaxRedirects = 3;
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * @returns a function that rejects with an Error if the host, or that of a redirect, is a blocked address or resolves
 * to one
 */
export function guardedFetch(blockedAddresses: BlockedAddresses, options: GuardOptions = {}): GuardedFetch {
  const { maxRedirects = defaultMaxRedirects, isInsecure = () => false } = options;
  return async (url, { signal, headers: allHeaders }) => {
    let currentUrl = url;
    let sentHeaders = allHeaders;
    for (let redirectCount = 0; ; redirectCount++) {
      const guard = {
        ...connectionGuard(currentUrl, blockedAddresses, options),
        ...(isInsecure(new URL(currentUrl).host) && withoutTlsVerification),
      };
      const response = await fetchWithoutRedirect(currentUrl, { signal, headers: sentHeaders }, guard);
      const { statusCode: status = 0, headers } = response;
      if (!redirects.has(status)) return responseOf(response, status);
      response.destroy();
      if (redirectCount === maxRedirects) throw new Error(`more than ${maxRedirects} redirects`);
      const target = redirectTarget(currentUrl, headers.location);
      if (new URL(target).origin !== new URL(currentUrl).origin) sentHeaders = omitAuthorization(sentHeaders);
      currentUrl = target;
    }
  };
}

const withoutTlsVerification = { rejectUnauthorized: false } as const;

function omitAuthorization(headers: FetchInit['headers']): FetchInit['headers'] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'authorization'));
}

/**
 * Options of Node's `http.get` that permit connections only to a permitted address of the URL's host.
 *
 * @throws Error if the host is a blocked address
 */
export function connectionGuard(
  url: string,
  blockedAddresses: BlockedAddresses,
  { trustedHost, lookup = systemLookup }: GuardOptions = {},
): { readonly lookup?: LookupFunction } {
  const parsedUrl = new URL(url);
  const { hostname } = parsedUrl;
  if (hostname === trustedHost) return {};
  const literal = hostOfUrl(parsedUrl);
  if (isIP(literal) !== 0) {
    const problem = blockedAddresses.problemOf(literal);
    if (problem !== undefined) throw new Error(`host ${literal} is ${problem}`);
    return {};
  }
  return {
    lookup: (name, lookupOptions, callback) => {
      lookup(name, { ...lookupOptions, all: true }, (error, addresses) => {
        const [firstAddress] = addresses ?? [];
        if (error !== null || firstAddress === undefined) {
          callback(error ?? new Error(`host name ${name} not resolved`), '', 0);
          return;
        }
        for (const { address } of addresses) {
          const problem = blockedAddresses.problemOf(address);
          if (problem === undefined) continue;
          callback(new Error(`host ${name} resolves to ${address}, which is ${problem}`), '', 0);
          return;
        }
        if (lookupOptions.all === true) callback(null, addresses);
        else callback(null, firstAddress.address, firstAddress.family);
      });
    },
  };
}

async function fetchWithoutRedirect(
  url: string,
  { signal, headers }: FetchInit,
  guard: Pick<TlsRequestOptions, 'lookup' | 'rejectUnauthorized'>,
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  // TLS is loaded on first use, because an agent starts without it.
  const get = url.startsWith('https:') ? (await import('node:https')).get : getPlain;
  // A pooled connection was checked for another URL.
  const options = { agent: false, signal, headers: { 'accept-encoding': 'identity', ...headers }, ...guard };
  const request = get(url, options, resolve);
  rejectUpgrade(request, reject);
  request.on('error', reject);
  return promise;
}

function responseOf(response: IncomingMessage, status: number): GuardedResponse {
  const ok = status >= 200 && status < 300;
  if (!ok) response.destroy();
  else if ((response.headers['content-encoding'] ?? 'identity') !== 'identity') {
    response.destroy();
    throw new Error('response must not be compressed');
  }
  return { ok, status, body: ok ? response : null, headers: response.headers };
}

function redirectTarget(currentUrl: string, location: string | undefined): string {
  const target = location === undefined ? null : URL.parse(location, currentUrl);
  if (target === null) throw new Error('redirect without a valid location');
  const allowedProtocols = new Set(['https:', new URL(currentUrl).protocol]);
  if (!allowedProtocols.has(target.protocol)) {
    const names = [...allowedProtocols].map((protocol) => protocol.slice(0, -1)).join(' or ');
    throw new Error(`URL of the redirect must use ${names}, got ${target.protocol.slice(0, -1)}`);
  }
  return target.href;
}
