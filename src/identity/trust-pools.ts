/**
 * Roots that verify certificates, in one pool per trust domain of a mesh, never merged. A certificate's SPIFFE ID selects its pool (spiffe/spiffe
 * standards/SPIFFE_Trust_Domain_and_Bundle.md §3).
 */
import { type Certificate, readCertificate } from './certificate.ts';
import { findPath } from './certificate-path.ts';
import type { TrustBundle } from './trust-bundle.ts';
import { svidOf, svidProblems } from './x509-svid.ts';

/** Bounds the CPU time that a client can cause. */
const maxChainLength = 10;

export class TrustPools {
  /** The roots of the mesh may also sign for its aliases. */
  readonly meshBundle: TrustBundle;
  readonly #rootsByAlias: ReadonlyMap<string, readonly Certificate[]>;

  /** @param rootsByAlias roots that sign only for one alias */
  constructor(meshBundle: TrustBundle, rootsByAlias: ReadonlyMap<string, readonly Certificate[]> = new Map()) {
    this.meshBundle = meshBundle;
    this.#rootsByAlias = rootsByAlias;
  }

  get rootsOfAliases(): Certificate[] {
    return [...this.#rootsByAlias.values()].flat();
  }

  /**
   * Whether the chain belongs to a workload of an alias and ends at a root that signs only for this alias.
   *
   * @param chain DER, leaf first
   */
  isAliasWorkload(chain: readonly Uint8Array[], currentDate: Date): boolean {
    try {
      const [certificate, ...intermediates] = chain.slice(0, maxChainLength).map(readCertificate);
      if (certificate === undefined || svidProblems(certificate).length > 0) return false;
      const id = svidOf(certificate);
      const roots = ('problem' in id ? undefined : this.#rootsByAlias.get(id.trustDomain)) ?? [];
      return 'path' in findPath({ certificate, intermediates, roots, at: currentDate });
    } catch {
      // An invalid certificate identifies no workload.
      return false;
    }
  }
}
