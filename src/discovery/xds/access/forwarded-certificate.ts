/**
 * Authenticates clients by `x-forwarded-client-cert` from trusted proxies. Only configured networks are trusted, and only a URI of the mesh's trust
 * domain is an identity (Istio accepts every name, so any local process can impersonate any workload).
 */
import { isIP } from 'node:net';
import { readCertificates } from '../../../identity/certificate.ts';
import { problemTexts } from '../../../identity/certificate-problem.ts';
import { workloadIdentityOf } from '../../../identity/spiffe-id.ts';
import { spiffeViolations } from '../../../identity/x509-svid.ts';
import { networkList } from '../../../runtime/addresses/network-list.ts';
import { messageOf } from '../../../runtime/errors.ts';
import type { Authenticator } from './authenticator.ts';

const header = 'x-forwarded-client-cert';
const maxHeaderCharacters = 16 * 1024;

/**
 * @param networks TRUSTED_GATEWAY_CIDR
 * @throws ChartpilotError FLAG_INVALID if a network is invalid
 */
export function forwardedCertificate(networks: readonly string[], trustDomain: () => string): Authenticator {
  const trustedNetworks = networkList('TRUSTED_GATEWAY_CIDR', networks);
  return {
    name: 'forwarded certificate',
    authenticate({ host: peerHost, metadata }) {
      const values = metadata(header);
      if (values.length === 0) return { failure: 'no forwarded certificate' };
      const host = asIpv4(peerHost);
      if (!trustedNetworks.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4')) {
        return { failure: `address ${host} is not in TRUSTED_GATEWAY_CIDR` };
      }
      if (values.length > 1) return { failure: `header ${header} must be sent once, got it ${values.length} times` };
      const text = values[0]!;
      if (text.length > maxHeaderCharacters)
        return {
          failure: `the forwarded certificate must have at most ${maxHeaderCharacters} characters, got ${text.length}`,
        };
      // Each proxy appends an element, but only the proxy that connects here is trusted.
      const element = elementsOf(text).at(-1) ?? '';
      const uris = valuesOf(element, 'uri');
      const problem = certificateProblem(valuesOf(element, 'cert'), uris);
      if (problem !== undefined) return { failure: `the forwarded certificate ${problem}` };
      // An X.509-SVID has one URI, so a certificate with several URIs identifies no client, even if only one has this trust domain.
      const isMeshIdentity = uris.length === 1 && workloadIdentityOf(uris[0]!)?.trustDomain === trustDomain();
      return isMeshIdentity
        ? { identities: uris }
        : { failure: 'the forwarded certificate must have exactly one URI, the SPIFFE ID of a workload of the mesh' };
    },
  };
}

function asIpv4(host: string): string {
  return host.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '');
}

/** Quoted values can contain commas and semicolons. */
function elementsOf(text: string): string[] {
  return splitOutsideQuotes(text, ',');
}

function valuesOf(element: string, key: string): string[] {
  return splitOutsideQuotes(element, ';').flatMap((pair) => {
    const [, name, value] = /^\s*([A-Za-z]+)=(.*?)\s*$/.exec(pair) ?? [];
    return name?.toLowerCase() === key && value !== undefined ? value.replace(/^"(.*)"$/, '$1') : [];
  });
}

/** The proxy verifies the chain, but possibly not the rules of SVIDs. */
function certificateProblem(forwarded: readonly string[], uris: readonly string[]): string | undefined {
  const [first, ...otherElements] = forwarded;
  if (first === undefined) return undefined;
  if (otherElements.length > 0) return 'occurs more than once in the header';
  try {
    const [leaf] = readCertificates(decodeURIComponent(first));
    const violations = spiffeViolations(leaf!);
    if (violations.length > 0) return `is not an X.509-SVID: ${problemTexts(violations)}`;
    return leaf!.alternativeNames!.uris[0] === uris[0] ? undefined : 'has a different URI than the header';
  } catch (error) {
    return messageOf(error);
  }
}

function splitOutsideQuotes(text: string, separator: string): string[] {
  const segments: string[] = [];
  let startIndex = 0;
  let isInsideQuotes = false;
  for (let charIndex = 0; charIndex < text.length; charIndex++) {
    if (text[charIndex] === '\\' && isInsideQuotes) charIndex++;
    else if (text[charIndex] === '"') isInsideQuotes = !isInsideQuotes;
    else if (text[charIndex] === separator && !isInsideQuotes) {
      segments.push(text.slice(startIndex, charIndex));
      startIndex = charIndex + 1;
    }
  }
  // If a quote is not closed, no element is reliable.
  return isInsideQuotes ? [] : [...segments, text.slice(startIndex)];
}
