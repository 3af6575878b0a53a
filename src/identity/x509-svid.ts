/** Checks every requirement of spiffe/spiffe standards/X509-SVID.md. */
import type { Certificate, KeyUsageName } from './certificate.ts';
import { type CertificateProblem, mismatchProblem, problemOf } from './certificate-problem.ts';
import { parseSpiffeId, type SpiffeId } from './spiffe-id.ts';

const serverAuth = '1.3.6.1.5.5.7.3.1';
const clientAuth = '1.3.6.1.5.5.7.3.2';

const usagesOfLeaves: ReadonlySet<KeyUsageName> = new Set(['digitalSignature', 'keyEncipherment', 'keyAgreement']);

const profile = 'CERTIFICATE_PROFILE_INVALID';

function violationOf(path: string, expected: string, actual: string): CertificateProblem {
  return mismatchProblem(profile, path, expected, actual);
}

function nameOfUsage(id: string): string {
  return id === serverAuth ? 'serverAuth' : id === clientAuth ? 'clientAuth' : id;
}

export function svidOf(leaf: Certificate): SpiffeId | { readonly problem: string } {
  const names = leaf.alternativeNames;
  const uris = names?.uris ?? [];
  if (uris.length !== 1) return { problem: `must have one URI SAN, got ${uris.length}` };
  return parseSpiffeId(uris[0]!);
}

/** Violations of X.509-SVID, RFC 5280 and RFC 8813. Does not check chain and validity. */
export function svidProblems(leaf: Certificate): CertificateProblem[] {
  const problems = spiffeViolations(leaf);
  if (leaf.isSubjectEmpty && leaf.alternativeNames?.isCritical === false) {
    problems.push(violationOf('subjectAltName', 'critical if the subject is empty', 'not critical'));
  }
  if (leaf.keyUsage?.flags.has('keyEncipherment') === true && leaf.publicKey.asymmetricKeyType !== 'rsa') {
    problems.push(violationOf('keyUsage', 'without keyEncipherment if the key is not RSA', 'keyEncipherment'));
  }
  return problems;
}

/** Unlike {@link svidProblems}, accepts certificates of Istio's authority, which sets `keyEncipherment` for every key type. */
export function spiffeViolations(leaf: Certificate): CertificateProblem[] {
  const problems: CertificateProblem[] = [];
  const id = svidOf(leaf);
  if ('problem' in id) problems.push(problemOf(profile, id.problem, { path: 'subjectAltName' }));
  else if (id.path === '')
    problems.push(violationOf('subjectAltName', 'a SPIFFE ID with a path', `spiffe://${id.trustDomain}`));
  if (leaf.basicConstraints?.isCa === true) problems.push(violationOf('basicConstraints', 'CA:FALSE', 'CA:TRUE'));
  problems.push(...usageProblems(leaf));
  const { extendedKeyUsage } = leaf;
  const isForServerAndClient = extendedKeyUsage?.includes(serverAuth) === true && extendedKeyUsage.includes(clientAuth);
  if (extendedKeyUsage !== undefined && !isForServerAndClient) {
    const expected = 'serverAuth and clientAuth, or absent';
    problems.push(violationOf('extendedKeyUsage', expected, extendedKeyUsage.map(nameOfUsage).join(', ')));
  }
  for (const extension of leaf.unknownCritical) {
    const message = `has the unsupported critical extension ${extension}`;
    problems.push(problemOf(profile, message, { path: 'extensions', got: extension }));
  }
  return problems;
}

function usageProblems({ keyUsage }: Certificate): CertificateProblem[] {
  if (keyUsage === undefined) return [violationOf('keyUsage', 'digitalSignature', 'none')];
  const { flags, isCritical } = keyUsage;
  const problems: CertificateProblem[] = [];
  if (!isCritical) problems.push(violationOf('keyUsage', 'critical', 'not critical'));
  if (!flags.has('digitalSignature')) {
    problems.push(violationOf('keyUsage', 'digitalSignature', [...flags].join(', ') || 'none'));
  }
  for (const flag of flags) {
    if (!usagesOfLeaves.has(flag))
      problems.push(violationOf('keyUsage', `without ${flag} in a leaf certificate`, flag));
  }
  return problems;
}
