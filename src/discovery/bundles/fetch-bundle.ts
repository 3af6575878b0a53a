/** Fetches trust bundles with the profile `https_web` (spiffe/spiffe standards/SPIFFE_Federation.md §5.2.1). */

import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { isIP } from 'node:net';
import { hostOfUrl } from '../../runtime/addresses/url-host.ts';
import { CodedError, messageOf, reasonError } from '../../runtime/errors.ts';
import { BlockedAddresses } from '../../runtime/fences/blocked-addresses.ts';
import { boundedText } from '../../runtime/fences/bounded-text.ts';
import { connectionGuard } from '../../runtime/fences/guarded-fetch.ts';
import { rejectUpgrade } from '../../runtime/fences/other-protocol.ts';

export interface BundleFetch {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** PEM roots that replace Node's roots in tests. */
  readonly ca?: string;
}

/** Trust domains have a few roots of 1 to 3 KB each. */
export const maxBundleBytes = 1024 * 1024;
const maxRedirects = 3;

export function endpointProblem(url: string): string | undefined {
  if (!URL.canParse(url)) return 'must be a URL';
  const { protocol, username, password } = new URL(url);
  if (protocol !== 'https:') return 'must begin with https://';
  return username === '' && password === '' ? undefined : 'must not have a user or password';
}

/** @throws CodedError TRUST_BUNDLE_UNAVAILABLE */
export async function fetchBundle(url: string, { timeoutMs, signal, ca }: BundleFetch): Promise<string> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const combinedSignal = AbortSignal.any([signal, timeout]);
  try {
    let currentUrl = url;
    for (let redirects = 0; ; redirects++) {
      const result = await requestOnce(currentUrl, combinedSignal, ca, new URL(url).hostname);
      if ('text' in result) return result.text;
      if (redirects === maxRedirects) throw unavailableError(`more than ${maxRedirects} redirects`);
      currentUrl = result.location;
    }
  } catch (error) {
    if (timeout.aborted) throw unavailableError(`no response within ${timeoutMs} ms`);
    throw unavailableError(messageOf(error), error);
  }
}

function unavailableError(text: string, cause?: unknown): CodedError {
  return cause instanceof CodedError ? cause : reasonError('TRUST_BUNDLE_UNAVAILABLE', text, { cause });
}

type BundleResponse = { readonly text: string } | { readonly location: string };

async function requestOnce(
  url: string,
  signal: AbortSignal,
  ca: string | undefined,
  trustedHost: string,
): Promise<BundleResponse> {
  const problem = endpointProblem(url);
  if (problem !== undefined) throw unavailableError(`the URL ${problem}`);
  // The operator trusts the configured host, but not the host of a redirect.
  const guard = connectionGuard(url, new BlockedAddresses(), { trustedHost });
  const { promise, resolve, reject } = Promise.withResolvers<BundleResponse>();
  const headers = { accept: 'application/json', 'accept-encoding': 'identity' };
  // Opens a new connection, because one that is idle between fetches can fail unnoticed.
  const request = get(url, {
    agent: false,
    headers,
    signal,
    ...(isAddress(url) && { servername: '' }),
    ...(ca !== undefined && { ca }),
    ...guard,
  });
  rejectUpgrade(request, reject);
  request.on('error', reject);
  request.on('response', (response) => {
    readResponse(response, url)
      .then(resolve, reject)
      .finally(() => request.destroy());
  });
  return promise;
}

/** IP addresses are not allowed in SNI (RFC 6066 §3). The certificate is still verified against the address. */
function isAddress(url: string): boolean {
  return isIP(hostOfUrl(new URL(url))) !== 0;
}

async function readResponse(response: IncomingMessage, url: string): Promise<BundleResponse> {
  const { statusCode = 0, headers } = response;
  if ([301, 302, 303, 307, 308].includes(statusCode)) return { location: redirection(headers.location, url) };
  if (statusCode !== 200) throw unavailableError(`HTTP status ${statusCode}, expected 200`);
  if ((headers['content-encoding'] ?? 'identity') !== 'identity')
    throw unavailableError('response must not be compressed');
  return { text: await boundedText(response, maxBundleBytes) };
}

/** A redirect applies to one response only, so the next fetch requests the configured URL again. */
function redirection(location: string | undefined, url: string): string {
  if (location === undefined || !URL.canParse(location, url))
    throw unavailableError('redirect without a valid location');
  const target = new URL(location, url).href;
  const problem = endpointProblem(target);
  if (problem !== undefined) throw unavailableError(`the URL of the redirect ${problem}`);
  return target;
}
