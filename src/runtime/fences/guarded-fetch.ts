/**
 * HTTP GET for URLs that objects of configuration name. The address that a host name resolves to is checked and then connected to,
 * so that a second DNS answer cannot replace it; the same for the host of every redirect.
 */
import { type LookupAddress, lookup as systemLookup } from 'node:dns';
import { get as getPlain, type IncomingMessage, type RequestOptions } from 'node:http';
import { isIP, type LookupFunction } from 'node:net';
import type { BlockedAddresses } from './blocked-addresses.ts';
import { refuseOtherProtocol } from './other-protocol.ts';

/** The part of a `fetch` response that is read here. */
export interface FetchedResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly body: AsyncIterable<Uint8Array> | null;
}

export type Fetch = (
  url: string,
  init: { readonly signal: AbortSignal; readonly headers: Readonly<Record<string, string>> },
) => Promise<FetchedResponse>;

export type Lookup = (
  hostname: string,
  options: { readonly all: true },
  callback: (error: Error | null, addresses: LookupAddress[]) => void,
) => void;

export interface GuardOptions {
  /** Host name of a URL that the operator configured: it may be any address. */
  readonly trustedHost?: string;
  /** The resolver of the system unless a test replaces it. */
  readonly lookup?: Lookup;
  /** Default 3. */
  readonly maxRedirects?: number;
}

const defaultMaxRedirects = 3;
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** @returns a function that rejects with an Error when the host, or that of a redirect, is a blocked address or resolves to one */
export function guardedFetch(blocked: BlockedAddresses, options: GuardOptions = {}): Fetch {
  const { maxRedirects = defaultMaxRedirects } = options;
  return async (url, init) => {
    let at = url;
    for (let followed = 0; ; followed++) {
      const response = await getOnce(at, init, connectionGuard(at, blocked, options));
      const { statusCode: status = 0, headers } = response;
      if (!redirects.has(status)) return responseOf(response, status);
      response.destroy();
      if (followed === maxRedirects) throw new Error(`more than ${maxRedirects} redirects`);
      at = redirectTarget(at, headers.location);
    }
  };
}

/**
 * Options of Node's `http.get` by which it connects to a permitted address of the URL's host only.
 *
 * @throws Error when the host is a blocked address
 */
export function connectionGuard(
  url: string,
  blocked: BlockedAddresses,
  { trustedHost, lookup = systemLookup }: GuardOptions = {},
): { readonly lookup?: LookupFunction } {
  const { hostname } = new URL(url);
  if (hostname === trustedHost) return {};
  const literal = hostname.replace(/^\[|\]$/g, '');
  if (isIP(literal) !== 0) {
    const problem = blocked.problemOf(literal);
    if (problem !== undefined) throw new Error(`host ${literal} is ${problem}`);
    return {};
  }
  return {
    lookup: (name, wanted, callback) => {
      lookup(name, { ...wanted, all: true }, (error, addresses) => {
        const [first] = addresses ?? [];
        if (error !== null || first === undefined) {
          callback(error ?? new Error(`host name ${name} not resolved`), '', 0);
          return;
        }
        for (const { address } of addresses) {
          const problem = blocked.problemOf(address);
          if (problem === undefined) continue;
          callback(new Error(`host ${name} resolves to ${address}, which is ${problem}`), '', 0);
          return;
        }
        if (wanted.all === true) callback(null, addresses);
        else callback(null, first.address, first.family);
      });
    },
  };
}

async function getOnce(
  url: string,
  { signal, headers }: Parameters<Fetch>[1],
  guard: Pick<RequestOptions, 'lookup'>,
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  // TLS is loaded when it is needed: an agent starts without it.
  const get = url.startsWith('https:') ? (await import('node:https')).get : getPlain;
  // A connection of its own: one that is kept open was checked for another URL.
  const options = { agent: false, signal, headers: { 'accept-encoding': 'identity', ...headers }, ...guard };
  const request = get(url, options, resolve);
  refuseOtherProtocol(request, reject);
  request.on('error', reject);
  return promise;
}

function responseOf(response: IncomingMessage, status: number): FetchedResponse {
  const ok = status >= 200 && status < 300;
  if (!ok) response.destroy();
  else if ((response.headers['content-encoding'] ?? 'identity') !== 'identity') {
    response.destroy();
    throw new Error('response must not be compressed');
  }
  return { ok, status, body: ok ? response : null };
}

function redirectTarget(from: string, location: string | undefined): string {
  const target = location === undefined ? null : URL.parse(location, from);
  if (target === null) throw new Error('redirect without a valid location');
  const allowed = new Set(['https:', new URL(from).protocol]);
  if (!allowed.has(target.protocol)) {
    const names = [...allowed].map((protocol) => protocol.slice(0, -1)).join(' or ');
    throw new Error(`URL of the redirect must use ${names}, got ${target.protocol.slice(0, -1)}`);
  }
  return target.href;
}
