/** Asks a bundle endpoint by the profile `https_web` (spiffe/spiffe standards/SPIFFE_Federation.md §5.2.1). */
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { isIP } from 'node:net';
import { CodedError, messageOf, reasonError } from '../../runtime/errors.ts';
import { BlockedAddresses } from '../../runtime/fences/blocked-addresses.ts';
import { boundedText } from '../../runtime/fences/bounded-text.ts';
import { connectionGuard } from '../../runtime/fences/guarded-fetch.ts';
import { refuseOtherProtocol } from '../../runtime/fences/other-protocol.ts';

export interface BundleFetch {
  /** For all of it: the connection, redirects, and the last byte. */
  readonly timeoutMs: number;
  /** Nobody asks any more. */
  readonly signal: AbortSignal;
  /** PEM, instead of the roots that Node knows; for tests. */
  readonly ca?: string;
}

/** Trust domains have a few roots of 1 to 3 KB; who sends more than this is none. */
export const mostBundleBytes = 1024 * 1024;
const mostRedirects = 3;

/** Why something is not the address of a bundle endpoint; undefined for one that is. */
export function endpointProblem(url: string): string | undefined {
  if (!URL.canParse(url)) return 'must be a URL';
  const { protocol, username, password } = new URL(url);
  if (protocol !== 'https:') return 'must begin with https://';
  return username === '' && password === '' ? undefined : 'must not have a user or password';
}

/**
 * @returns the bundle as text
 * @throws CodedError TRUST_BUNDLE_UNAVAILABLE
 */
export async function fetchBundle(url: string, { timeoutMs, signal, ca }: BundleFetch): Promise<string> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const either = AbortSignal.any([signal, timeout]);
  try {
    let at = url;
    for (let redirects = 0; ; redirects++) {
      const answer = await askOnce(at, either, ca, new URL(url).hostname);
      if ('text' in answer) return answer.text;
      if (redirects === mostRedirects) throw unavailable(`more than ${mostRedirects} redirects`);
      at = answer.location;
    }
  } catch (error) {
    if (timeout.aborted) throw unavailable(`no response within ${timeoutMs} ms`);
    throw unavailable(messageOf(error), error);
  }
}

function unavailable(text: string, cause?: unknown): CodedError {
  return cause instanceof CodedError ? cause : reasonError('TRUST_BUNDLE_UNAVAILABLE', text, { cause });
}

type Answer = { readonly text: string } | { readonly location: string };

async function askOnce(url: string, signal: AbortSignal, ca: string | undefined, trustedHost: string): Promise<Answer> {
  const problem = endpointProblem(url);
  if (problem !== undefined) throw unavailable(`the URL ${problem}`);
  // The operator named the endpoint's host, and nobody the host that it redirects to.
  const guard = connectionGuard(url, new BlockedAddresses(), { trustedHost });
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const headers = { accept: 'application/json', 'accept-encoding': 'identity' };
  // A connection of its own: what is kept open for minutes is an end that nobody looks at.
  const request = get(url, {
    agent: false,
    headers,
    signal,
    ...(isAddress(url) && { servername: '' }),
    ...(ca !== undefined && { ca }),
    ...guard,
  });
  refuseOtherProtocol(request, reject);
  request.on('error', reject);
  request.on('response', (response) => {
    readAnswer(response, url)
      .then(resolve, reject)
      .finally(() => request.destroy());
  });
  return promise;
}

/** TLS names hosts and no addresses (RFC 6066 §3); the certificate is held against the address all the same. */
function isAddress(url: string): boolean {
  return isIP(new URL(url).hostname.replace(/^\[|\]$/g, '')) !== 0;
}

async function readAnswer(response: IncomingMessage, url: string): Promise<Answer> {
  const { statusCode = 0, headers } = response;
  if ([301, 302, 303, 307, 308].includes(statusCode)) return { location: redirection(headers.location, url) };
  if (statusCode !== 200) throw unavailable(`HTTP status ${statusCode}, expected 200`);
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') throw unavailable('response must not be compressed');
  return { text: await boundedText(response, mostBundleBytes) };
}

/** What is configured is asked again each time: another place counts for this one answer (§5.2.1.4). */
function redirection(location: string | undefined, url: string): string {
  if (location === undefined || !URL.canParse(location, url)) throw unavailable('redirect without a valid location');
  const target = new URL(location, url).href;
  const problem = endpointProblem(target);
  if (problem !== undefined) throw unavailable(`the URL of the redirect ${problem}`);
  return target;
}
