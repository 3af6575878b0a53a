/** Roots are compared as sets: order, line ends and comments do not matter. */
import { createHash } from 'node:crypto';
import { type Certificate, readCertificates } from './certificate.ts';
import { displayNameOf, issuerProblem } from './certificate-path.ts';
import { CertificateError } from './certificate-problem.ts';

export class TrustBundle {
  readonly trustDomain: string;
  /** Unique, sorted by hash. */
  readonly roots: readonly Certificate[];
  /** Hash of the set, by which two peers compare their trusted roots. */
  readonly hash: string;

  constructor(trustDomain: string, roots: readonly Certificate[]) {
    const rootByHash = new Map(roots.map((root) => [root.sha256, root]));
    this.trustDomain = trustDomain;
    this.roots = [...rootByHash.values()].sort((a, b) => (a.sha256 < b.sha256 ? -1 : 1));
    this.hash = createHash('sha256')
      .update(this.roots.map(({ sha256 }) => sha256).join('\n'))
      .digest('hex');
  }

  /** @throws CertificateError or PemError if the text has no certificates, or one that is invalid or not an authority */
  static fromPem(trustDomain: string, pem: string): TrustBundle {
    const roots = readCertificates(pem);
    for (const root of roots) {
      const problem = issuerProblem(root);
      if (problem !== undefined) {
        throw new CertificateError({ ...problem, message: `root ${displayNameOf(root)} ${problem.message}` });
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

  includes(other: TrustBundle): boolean {
    return other.trustDomain === this.trustDomain && other.roots.every((root) => this.has(root));
  }

  withRoots(...roots: readonly Certificate[]): TrustBundle {
    return new TrustBundle(this.trustDomain, [...this.roots, ...roots]);
  }

  withoutRoot({ sha256 }: Certificate): TrustBundle {
    return new TrustBundle(
      this.trustDomain,
      this.roots.filter((root) => root.sha256 !== sha256),
    );
  }
}
