/**
 * Which roots judge which certificate: one pool for each trust domain of a mesh, never put together. The certificate says by its SPIFFE id
 * which one counts (spiffe/spiffe standards/SPIFFE_Trust_Domain_and_Bundle.md §3).
 */
import { type Certificate, readCertificate } from './certificate.ts';
import { findPath } from './certificate-path.ts';
import type { TrustBundle } from './trust-bundle.ts';
import { svidOf, svidProblems } from './x509-svid.ts';

/** A chain with more than this was made to cost something. */
const longestChain = 10;

export class TrustPools {
  /** Of the mesh's own trust domain. Its roots sign for the aliases as well, which are the same mesh; TLS judges by it. */
  readonly own: TrustBundle;
  readonly #ofAliases: ReadonlyMap<string, readonly Certificate[]>;

  /** @param ofAliases roots that sign for an alias alone */
  constructor(own: TrustBundle, ofAliases: ReadonlyMap<string, readonly Certificate[]> = new Map()) {
    this.own = own;
    this.#ofAliases = ofAliases;
  }

  /** Those that sign for an alias. */
  get rootsOfAliases(): Certificate[] {
    return [...this.#ofAliases.values()].flat();
  }

  /**
   * Whether a chain that does not lead to a root of the mesh's own is that of a workload of an alias, by the roots of this alias.
   *
   * @param chain DER, the leaf first
   */
  isOfAlias(chain: readonly Uint8Array[], at: Date): boolean {
    try {
      const [certificate, ...intermediates] = chain.slice(0, longestChain).map(readCertificate);
      if (certificate === undefined || svidProblems(certificate).length > 0) return false;
      const id = svidOf(certificate);
      const roots = ('problem' in id ? undefined : this.#ofAliases.get(id.trustDomain)) ?? [];
      return 'path' in findPath({ certificate, intermediates, roots, at });
    } catch {
      // What cannot be read is nobody's.
      return false;
    }
  }
}
