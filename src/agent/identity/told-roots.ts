/**
 * Roots that the control plane has told over connections on which it had shown who it is (PCDS). They stand beside those of the
 * agent's file for the next connection, so that a rotation of the root does not cut off an agent whose file does not follow.
 *
 * They do so only where the file's root is one of the mesh's, or was one when a rotation began: a control plane that is known by
 * a root outside the mesh, such as a public authority's, is not to be known by the root that workloads' certificates lead to.
 */
import { LRUCache } from 'lru-cache';
import { certificatesIn, hashOfRoots, unionOf } from './root-set.ts';

/** Roots before those of now that a file may still hold. */
const mostAncestors = 32;

export class ToldRoots {
  #roots: readonly string[] = [];
  /** Hashes of the roots of now, and of those that they have followed. */
  readonly #lineage = new LRUCache<string, true>({ max: mostAncestors });

  /** The control plane has told these roots, in PEM, one each. A set without a root of the one before is no successor of it. */
  tell(roots: readonly string[]): void {
    const hashes = roots.map(hashOfRoot);
    if (!this.#roots.some((root) => hashes.includes(hashOfRoot(root)))) this.#lineage.clear();
    this.#roots = roots;
    for (const hash of hashes) this.#lineage.set(hash, true);
  }

  /** The certificates of a file, and beside them what was told, where it follows one of them. */
  beside(file: string): string {
    if (this.#roots.length === 0) return file;
    const own = certificatesIn(Buffer.from(file));
    return own.some((root) => this.#lineage.has(hashOfRoot(root))) ? unionOf(own, this.#roots) : file;
  }
}

function hashOfRoot(root: string): string {
  return hashOfRoots([root]);
}
