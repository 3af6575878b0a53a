/** Compares sets of root certificates independent of order, line endings and comments. */
import { createHash, X509Certificate } from 'node:crypto';
import { isCertificate, pemBlocks } from './pem-file.ts';

export function parseCertificates(content: Buffer): string[] {
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

/** PEM without duplicates, sorted by the hash of the DER encoding. */
export function unionOf(...sets: readonly (readonly string[])[]): string {
  return sortByHash(sets.flat())
    .map(([, pem]) => pem)
    .join('');
}

/** The hash equals that of the control plane's bundle (src/identity/trust-bundle.ts). */
export function hashOfRoots(roots: readonly string[]): string {
  return createHash('sha256').update(hashesOf(roots).join('\n')).digest('hex');
}

export function hashesOf(roots: readonly string[]): string[] {
  return sortByHash(roots).map(([hash]) => hash);
}

function sortByHash(roots: readonly string[]): [hash: string, pem: string][] {
  const pemByHash = new Map(
    roots.map((pem) => {
      const certificate = new X509Certificate(pem);
      return [createHash('sha256').update(certificate.raw).digest('hex'), certificate.toString()];
    }),
  );
  return [...pemByHash].sort(([a], [b]) => (a < b ? -1 : 1));
}
