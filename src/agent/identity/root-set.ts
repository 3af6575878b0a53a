/** Sets of roots, compared by their certificates: order, line ends and comments make no other set (spec/identity.md §5). */
import { createHash, X509Certificate } from 'node:crypto';
import { isCertificate, pemBlocks } from './pem-file.ts';

/** The certificates of a text, one each; what is none is left out. */
export function certificatesIn(content: Buffer): string[] {
  return pemBlocks(content)
    .filter((block) => isCertificate(block) && block.isWhole)
    .flatMap(({ text }) => {
      try {
        return [new X509Certificate(text).toString()];
      } catch {
        return [];
      }
    });
}

/** Each once, sorted by the hashes of their DER, in PEM. */
export function unionOf(...sets: readonly (readonly string[])[]): string {
  return sorted(sets.flat())
    .map(([, pem]) => pem)
    .join('');
}

/** Hash of the whole set, as the control plane has it of its bundle (src/identity/trust-bundle.ts). */
export function hashOfRoots(roots: readonly string[]): string {
  return createHash('sha256').update(hashesOf(roots).join('\n')).digest('hex');
}

/** Hash of each root, sorted. */
export function hashesOf(roots: readonly string[]): string[] {
  return sorted(roots).map(([hash]) => hash);
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
