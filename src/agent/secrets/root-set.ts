/** Sets of roots, compared by their certificates: order, line ends and comments make no other set (spec/identity.md §5). */
import { createHash, X509Certificate } from 'node:crypto';

/** Each once, sorted by the hashes of their DER, in PEM. */
export function unionOf(...sets: readonly (readonly string[])[]): string {
  return sorted(sets.flat())
    .map(([, pem]) => pem)
    .join('');
}

/** Of the set, as the control plane has it of its bundle (src/identity/trust-bundle.ts). */
export function hashOf(roots: readonly string[]): string {
  const hashes = sorted(roots).map(([hash]) => hash);
  return createHash('sha256').update(hashes.join('\n')).digest('hex');
}

function sorted(roots: readonly string[]): [hash: string, pem: string][] {
  const byHash = new Map(
    roots.map((pem) => {
      const certificate = new X509Certificate(pem);
      return [createHash('sha256').update(certificate.raw).digest('hex'), certificate.toString()];
    }),
  );
  return [...byHash].sort(([a], [b]) => (a < b ? -1 : 1));
}
