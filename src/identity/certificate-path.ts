/** Finds a path from a leaf through intermediates to a root (RFC 5280 §6, without policies and name constraints). */

import type { CertificateCode } from '../runtime/error-codes/certificates.ts';
import type { Certificate } from './certificate.ts';
import { type CertificateProblem, problemOf } from './certificate-problem.ts';

export interface PathRequest {
  readonly certificate: Certificate;
  /** The certificates can be in any order. */
  readonly intermediates: readonly Certificate[];
  readonly roots: readonly Certificate[];
  readonly at: Date;
}

export type PathResult =
  /** The path starts with the certificate and ends with its root. */
  { readonly path: readonly Certificate[] } | { readonly problem: string; readonly code: CertificateCode };

/** The length includes leaf and root. */
const maxPathLength = 8;
/** Limits the cost if names repeat: then every pair of certificates may need verification. */
const maxVerifications = 100;

/** On failure, returns the problem of the last path that was tried. */
export function findPath({ certificate, intermediates, roots, at }: PathRequest): PathResult {
  let problem = chainProblem('no trusted root or intermediate is its issuer');
  let verifications = 0;
  const rootHashes = new Set(roots.map(({ sha256 }) => sha256));

  const isIssuer = (issuer: Certificate, subject: Certificate, intermediateCount: number): boolean => {
    if (!subject.x509.checkIssued(issuer.x509)) return false;
    const reason = issuerProblem(issuer, intermediateCount) ?? timeProblem(issuer, at);
    if (reason !== undefined) problem = { ...reason, message: `issuer ${displayNameOf(issuer)} ${reason.message}` };
    else if (++verifications > maxVerifications)
      problem = chainProblem(`more than ${maxVerifications} candidate issuers have the same name`);
    else if (subject.x509.verify(issuer.publicKey)) return true;
    else problem = chainProblem(`signature does not match the key of issuer ${displayNameOf(issuer)}`);
    return false;
  };

  const search = (path: readonly Certificate[]): readonly Certificate[] | undefined => {
    const lastCertificate = path.at(-1)!;
    if (rootHashes.has(lastCertificate.sha256)) return path;
    if (path.length === maxPathLength) {
      problem = chainProblem(`chain must have at most ${maxPathLength} certificates`);
      return undefined;
    }
    // Intermediates count against the path length, except self-issued ones.
    const intermediateCount = path.slice(1).filter(({ subject, issuer }) => !areEqual(subject, issuer)).length;
    for (const issuer of [...roots, ...intermediates]) {
      if (path.includes(issuer) || !isIssuer(issuer, lastCertificate, intermediateCount)) continue;
      const completePath = search([...path, issuer]);
      if (completePath !== undefined) return completePath;
    }
    return undefined;
  };

  const certificateFault = timeProblem(certificate, at) ?? criticalProblem(certificate);
  if (certificateFault !== undefined) return { problem: certificateFault.message, code: certificateFault.code };
  const path = search([certificate]);
  return path === undefined ? { problem: problem.message, code: problem.code } : { path };
}

function chainProblem(message: string): CertificateProblem {
  return problemOf('CERTIFICATE_CHAIN_INVALID', message);
}

export function earliestExpiryOf(path: readonly Certificate[]): Date {
  return new Date(Math.min(...path.map(({ notAfter }) => notAfter.getTime())));
}

/** @param intermediateCount number of authorities below the issuer */
export function issuerProblem(issuer: Certificate, intermediateCount = 0): CertificateProblem | undefined {
  const { basicConstraints, keyUsage } = issuer;
  if (basicConstraints?.isCa !== true) return problemOf('CERTIFICATE_NOT_CA', 'is not a CA certificate');
  if (keyUsage !== undefined && !keyUsage.flags.has('keyCertSign')) {
    return problemOf('CERTIFICATE_NOT_CA', 'must not sign certificates: key usage keyCertSign is missing');
  }
  if (basicConstraints.pathLength !== undefined && intermediateCount > basicConstraints.pathLength) {
    const limit = basicConstraints.pathLength;
    return chainProblem(`has path length constraint ${limit}, but ${intermediateCount} intermediate CAs are below it`);
  }
  return criticalProblem(issuer);
}

export function timeProblem({ notBefore, notAfter }: Certificate, time: Date): CertificateProblem | undefined {
  if (time < notBefore) {
    return problemOf('CERTIFICATE_NOT_YET_VALID', `is not valid before ${notBefore.toISOString()}`);
  }
  // A certificate is valid during the second of `notAfter` (RFC 5280 §4.1.2.5).
  return time.getTime() >= notAfter.getTime() + 1000
    ? problemOf('CERTIFICATE_EXPIRED', `expired on ${notAfter.toISOString()}`)
    : undefined;
}

function criticalProblem({ unknownCritical }: Certificate): CertificateProblem | undefined {
  const [first] = unknownCritical;
  return first === undefined
    ? undefined
    : problemOf('CERTIFICATE_INVALID', `has the unsupported critical extension ${first}`);
}

export function displayNameOf({ x509, serialNumber }: Certificate): string {
  return x509.subject?.split('\n').at(-1) ?? `serial number ${serialNumber}`;
}

function areEqual(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}
