/**
 * Whether a certificate is an X.509-SVID: every row of spec/identity.md §3 (spiffe/spiffe standards/X509-SVID.md), more than
 * any one implementation of others looks at.
 */
import type { Certificate, KeyUsageName } from './certificate.ts';
import { parseSpiffeId, type SpiffeId } from './spiffe-id.ts';

const serverAuth = '1.3.6.1.5.5.7.3.1';
const clientAuth = '1.3.6.1.5.5.7.3.2';

const usagesOfLeaves: ReadonlySet<KeyUsageName> = new Set(['digitalSignature', 'keyEncipherment', 'keyAgreement']);

/** The id that a leaf names, when it names exactly one and that one is good. */
export function svidOf(leaf: Certificate): SpiffeId | { readonly problem: string } {
  const names = leaf.alternativeNames;
  const uris = names?.uris ?? [];
  if (uris.length !== 1) return { problem: `has ${uris.length} URIs as alternative names and must have one` };
  return parseSpiffeId(uris[0]!);
}

/**
 * Everything that makes a leaf no X.509-SVID, or breaks RFC 5280 or RFC 8813: what a certificate that is signed here must keep. Empty
 * for a good one. Its chain and its time are not checked.
 */
export function svidProblems(leaf: Certificate): string[] {
  const problems = spiffeViolations(leaf);
  if (leaf.isSubjectEmpty && leaf.alternativeNames?.isCritical === false) {
    problems.push('has alternative names that are not critical beside an empty subject');
  }
  if (leaf.keyUsage?.flags.has('keyEncipherment') === true && leaf.publicKey.asymmetricKeyType !== 'rsa') {
    problems.push('is for the encipherment of keys, which only an RSA key can do');
  }
  return problems;
}

/**
 * The rules of the SPIFFE standard that a leaf violates: what a client's certificate must keep. Istio's authority sets
 * `keyEncipherment` for every kind of key, so {@link svidProblems} would reject its certificates.
 */
export function spiffeViolations(leaf: Certificate): string[] {
  const problems: string[] = [];
  const id = svidOf(leaf);
  if ('problem' in id) problems.push(id.problem);
  else if (id.path === '') problems.push('names a trust domain and no workload');
  if (leaf.basicConstraints?.isCa === true) problems.push('is the certificate of an authority');
  problems.push(...usageProblems(leaf));
  const { extendedKeyUsage } = leaf;
  const isForBoth = extendedKeyUsage?.includes(serverAuth) === true && extendedKeyUsage.includes(clientAuth);
  if (extendedKeyUsage !== undefined && !isForBoth) problems.push('is not for servers and clients both');
  for (const extension of leaf.unknownCritical) problems.push(`has the critical extension ${extension}, unknown here`);
  return problems;
}

function usageProblems({ keyUsage }: Certificate): string[] {
  if (keyUsage === undefined) return ['says no key usage'];
  const { flags, isCritical } = keyUsage;
  const problems: string[] = [];
  if (!isCritical) problems.push('has a key usage that is not critical');
  if (!flags.has('digitalSignature')) problems.push('is not for digital signatures');
  for (const flag of flags) if (!usagesOfLeaves.has(flag)) problems.push(`is for ${flag}, which no leaf may be`);
  return problems;
}
