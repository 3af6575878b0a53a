/** From a leaf over intermediates to a root (RFC 5280 §6, without policies and name constraints). */
import type { Certificate } from './certificate.ts';

export interface PathQuestion {
  /** The leaf, or an intermediate that is to sign. */
  readonly certificate: Certificate;
  /** In any order. What is not needed is passed over. */
  readonly intermediates: readonly Certificate[];
  readonly roots: readonly Certificate[];
  readonly at: Date;
}

export type PathAnswer =
  /** From the certificate to its root; the root itself is the last, and the only one when the certificate is a root. */
  { readonly path: readonly Certificate[] } | { readonly problem: string };

/** Certificates in a path, the first and the root among them. */
const longestPath = 8;
/** Of names that occur often, every pair may have to be tried. */
const mostVerifications = 100;

/** The first path that holds, and when there is none, why the last one that was tried does not. */
export function findPath({ certificate, intermediates, roots, at }: PathQuestion): PathAnswer {
  let problem = 'no root or intermediate has the name of its issuer';
  let verifications = 0;
  const known = new Set(roots.map(({ sha256 }) => sha256));

  const isIssuer = (issuer: Certificate, subject: Certificate, below: number): boolean => {
    if (!subject.x509.checkIssued(issuer.x509)) return false;
    const reason = issuerProblem(issuer, below) ?? timeProblem(issuer, at);
    if (reason !== undefined) problem = `the issuer ${nameOf(issuer)} ${reason}`;
    else if (++verifications > mostVerifications) problem = 'there are too many certificates of one name to try';
    else if (subject.x509.verify(issuer.publicKey)) return true;
    else problem = `the signature is not that of the issuer ${nameOf(issuer)}`;
    return false;
  };

  const search = (path: readonly Certificate[]): readonly Certificate[] | undefined => {
    const last = path.at(-1)!;
    if (known.has(last.sha256)) return path;
    if (path.length === longestPath) {
      problem = `the chain has more than ${longestPath} certificates`;
      return undefined;
    }
    // Authorities between this one and the leaf count against an issuer's path length, those that issue themselves do not.
    const below = path.slice(1).filter(({ subject, issuer }) => !areEqual(subject, issuer)).length;
    for (const issuer of [...roots, ...intermediates]) {
      if (path.includes(issuer) || !isIssuer(issuer, last, below)) continue;
      const found = search([...path, issuer]);
      if (found !== undefined) return found;
    }
    return undefined;
  };

  const own = timeProblem(certificate, at) ?? criticalProblem(certificate);
  if (own !== undefined) return { problem: own };
  const path = search([certificate]);
  return path === undefined ? { problem } : { path };
}

/** When the first certificate of a path ends: nothing that hangs on it may last longer (spec/identity.md §1 #7). */
export function endOf(path: readonly Certificate[]): Date {
  return new Date(Math.min(...path.map(({ notAfter }) => notAfter.getTime())));
}

/** Why a certificate cannot be that of an authority, with so many authorities below it. */
export function issuerProblem(issuer: Certificate, below = 0): string | undefined {
  const { basicConstraints, keyUsage } = issuer;
  if (basicConstraints?.isCa !== true) return 'is not an authority';
  if (keyUsage !== undefined && !keyUsage.flags.has('keyCertSign')) return 'may not sign certificates';
  if (basicConstraints.pathLength !== undefined && below > basicConstraints.pathLength) {
    return `allows ${basicConstraints.pathLength} authorities below it, and has ${below}`;
  }
  return criticalProblem(issuer);
}

/** Why a certificate does not count at a time. */
export function timeProblem({ notBefore, notAfter }: Certificate, at: Date): string | undefined {
  if (at < notBefore) return `is not valid before ${notBefore.toISOString()}`;
  // The last second belongs to it (RFC 5280 §4.1.2.5).
  return at.getTime() >= notAfter.getTime() + 1000 ? `has ended on ${notAfter.toISOString()}` : undefined;
}

function criticalProblem({ unknownCritical }: Certificate): string | undefined {
  const [first] = unknownCritical;
  return first === undefined ? undefined : `has the critical extension ${first}, unknown here`;
}

/** For people: the last line of its subject, else its serial number. */
export function nameOf({ x509, serialNumber }: Certificate): string {
  return x509.subject?.split('\n').at(-1) ?? `number ${serialNumber}`;
}

function areEqual(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}
