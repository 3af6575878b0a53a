/** A client certificate must be an X.509-SVID. */
import { hash } from 'node:crypto';
import { readCertificate } from '../../../identity/certificate.ts';
import { problemTexts } from '../../../identity/certificate-problem.ts';
import { spiffeViolations } from '../../../identity/x509-svid.ts';
import { setBounded } from '../../../model/collections/set-bounded.ts';
import { messageOf } from '../../../runtime/errors.ts';
import type { Authentication, Authenticator } from './authenticator.ts';

/** Parsing takes about a millisecond, and a connection opens many streams. */
const maxCachedResults = 1_024;

/**
 * The certificate must be an X.509-SVID. TLS verified the chain at the handshake, so only the expiry is checked again for each stream.
 *
 * @param isRevoked by serial number
 * @param now milliseconds since 1970
 */
export function clientCertificate(
  isRevoked: (serialNumber: string) => boolean = () => false,
  now: () => number = Date.now,
): Authenticator {
  const cachedResults = new Map<string, Authentication>();
  return {
    name: 'client certificate',
    authenticate({ certificate }) {
      if (certificate === undefined) return { failure: 'no client certificate' };
      if (hasEnded(certificate.valid_to, now()))
        return { failure: `the certificate expired on ${certificate.valid_to}` };
      if (isRevoked(certificate.serialNumber ?? '')) return { failure: 'the certificate is revoked' };
      const key = hash('sha256', certificate.raw);
      const identityResult = cachedResults.get(key) ?? identityOf(certificate.raw);
      setBounded(cachedResults, key, identityResult, maxCachedResults);
      return identityResult;
    },
  };
}

function identityOf(der: Uint8Array): Authentication {
  try {
    const certificate = readCertificate(der);
    const violations = spiffeViolations(certificate);
    if (violations.length > 0) return { failure: `the certificate is not an X.509-SVID: ${problemTexts(violations)}` };
    return { identities: certificate.alternativeNames!.uris };
  } catch (error) {
    return { failure: `the certificate ${messageOf(error)}` };
  }
}

/** The last second belongs to the validity period (RFC 5280 §4.1.2.5). */
function hasEnded(expiryTime: string | undefined, now: number): boolean {
  return expiryTime !== undefined && !(now < Date.parse(expiryTime) + 1_000);
}
