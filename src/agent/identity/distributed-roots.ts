/**
 * Roots that an authenticated control plane distributes (PCDS) are trusted in addition to the agent's file, so that an agent with an outdated file
 * survives a root rotation. They apply only if the file contains a current or earlier root of the mesh: the root of workload certificates must not
 * verify a control plane with another root, such as that of a public CA.
 */
import { LRUCache } from 'lru-cache';
import { hashOfRoots, parseCertificates, unionOf } from './root-set.ts';

/** Maximum earlier roots that a file may still contain. */
const maxAncestors = 32;

export class DistributedRoots {
  #roots: readonly string[] = [];
  /** Hashes of the current roots and their predecessors. */
  readonly #lineage = new LRUCache<string, true>({ max: maxAncestors });

  /** A set without a root of the previous set resets the lineage. */
  update(roots: readonly string[]): void {
    const hashes = roots.map(hashOfRoot);
    if (!this.#roots.some((root) => hashes.includes(hashOfRoot(root)))) this.#lineage.clear();
    this.#roots = roots;
    for (const hash of hashes) this.#lineage.set(hash, true);
  }

  addTo(file: string): string {
    if (this.#roots.length === 0) return file;
    const fileRoots = parseCertificates(Buffer.from(file));
    return fileRoots.some((root) => this.#lineage.has(hashOfRoot(root))) ? unionOf(fileRoots, this.#roots) : file;
  }
}

function hashOfRoot(root: string): string {
  return hashOfRoots([root]);
}
