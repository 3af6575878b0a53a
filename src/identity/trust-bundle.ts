/**
 * The roots of one trust domain. Compared as sets of certificates: other order, other line ends, a comment make no other
 * bundle (spec/identity.md §5). Bundles of two trust domains are never put together: any could then forge the other.
 */
import { createHash } from 'node:crypto';
import { type Certificate, readCertificates } from './certificate.ts';
import { issuerProblem, nameOf } from './certificate-path.ts';
import { CertificateError } from './certificate-problem.ts';

export class TrustBundle {
  readonly trustDomain: string;
  /** Each once, sorted by their hashes. */
  readonly roots: readonly Certificate[];
  /** Of the set: what two ends compare to know whether they trust the same roots. */
  readonly hash: string;

  constructor(trustDomain: string, roots: readonly Certificate[]) {
    const byHash = new Map(roots.map((root) => [root.sha256, root]));
    this.trustDomain = trustDomain;
    this.roots = [...byHash.values()].sort((a, b) => (a.sha256 < b.sha256 ? -1 : 1));
    this.hash = createHash('sha256')
      .update(this.roots.map(({ sha256 }) => sha256).join('\n'))
      .digest('hex');
  }

  /**
   * @throws CertificateError or PemError: no certificate, one that is broken, one that is no authority's
   */
  static fromPem(trustDomain: string, pem: string): TrustBundle {
    const roots = readCertificates(pem);
    for (const root of roots) {
      const problem = issuerProblem(root);
      if (problem !== undefined) {
        throw new CertificateError({ ...problem, message: `root ${nameOf(root)} ${problem.message}` });
      }
    }
    return new TrustBundle(trustDomain, roots);
  }

  get pem(): string {
    return this.roots.map(({ pem }) => pem).join('');
  }

  has({ sha256 }: Certificate): boolean {
    return this.roots.some((root) => root.sha256 === sha256);
  }

  /** Whether everything that the other trusts is trusted by this one. */
  includes(other: TrustBundle): boolean {
    return other.trustDomain === this.trustDomain && other.roots.every((root) => this.has(root));
  }

  with(...roots: readonly Certificate[]): TrustBundle {
    return new TrustBundle(this.trustDomain, [...this.roots, ...roots]);
  }

  without({ sha256 }: Certificate): TrustBundle {
    return new TrustBundle(
      this.trustDomain,
      this.roots.filter((root) => root.sha256 !== sha256),
    );
  }
}
