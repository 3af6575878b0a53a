/**
 * Roots that verify certificates: one pool per trust domain of a mesh, never merged. The SPIFFE ID of a certificate selects its pool (spiffe/spiffe
 * standards/SPIFFE_Trust_Domain_and_Bundle.md §3).
 */
import { type Certificate, readCertificate } from './certificate.ts';
import { findPath } from './certificate-path.ts';
import type { TrustBundle } from './trust-bundle.ts';
import { svidOf, svidProblems } from './x509-svid.ts';

/** A longer chain is an attack on CPU time. */
const maxChainLength = 10;

export class TrustPools {
  /** Pool of the mesh's trust domain, which TLS uses. Its roots also sign for aliases, which are the same mesh. */
  readonly meshBundle: TrustBundle;
  readonly #ofAliases: ReadonlyMap<string, readonly Certificate[]>;

  /** @param ofAliases roots that sign only for one alias */
  constructor(meshBundle: TrustBundle, ofAliases: ReadonlyMap<string, readonly Certificate[]> = new Map()) {
    this.meshBundle = meshBundle;
    this.#ofAliases = ofAliases;
  }

  get rootsOfAliases(): Certificate[] {
    return [...this.#ofAliases.values()].flat();
  }

  /**
   * Whether the roots of an alias verify a chain that no root of the mesh verifies, for a workload of this alias.
   *
   * @param chain DER, leaf first
   */
  isOfAlias(chain: readonly Uint8Array[], at: Date): boolean {
    try {
      const [certificate, ...intermediates] = chain.slice(0, maxChainLength).map(readCertificate);
      if (certificate === undefined || svidProblems(certificate).length > 0) return false;
      const id = svidOf(certificate);
      const roots = ('problem' in id ? undefined : this.#ofAliases.get(id.trustDomain)) ?? [];
      return 'path' in findPath({ certificate, intermediates, roots, at });
    } catch {
      // An invalid certificate identifies no workload.
      return false;
    }
  }
}
