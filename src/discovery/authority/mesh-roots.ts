/**
 * Roots that the mesh configuration adds (`caCertificates`), of the mesh's own trust domain alone: whatever is in the one pool of roots
 * can sign for everybody in it (spec/identity.md §6). Those of other trust domains need pools of their own, and are not trusted here.
 */
import { type Certificate, readCertificates } from '../../identity/certificate.ts';
import { issuerProblem, nameOf } from '../../identity/certificate-path.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { messageOf } from '../../runtime/errors.ts';

export interface RootsOfMesh {
  readonly roots: readonly Certificate[];
  /** What of it is not trusted, and why. */
  readonly passedOver: readonly string[];
}

export function rootsOfMesh({
  caCertificates,
  trustDomain,
}: Pick<MeshConfig, 'caCertificates' | 'trustDomain'>): RootsOfMesh {
  const roots: Certificate[] = [];
  const passedOver: string[] = [];
  caCertificates.forEach(({ pem, trustDomains }, i) => {
    const at = `caCertificates[${i}]`;
    const isOwn = trustDomains.length === 0 || trustDomains.includes(trustDomain);
    if (!isOwn) {
      passedOver.push(
        `${at}: roots of ${trustDomains.join(', ')} are not trusted: workloads of other trust domains are nobody here`,
      );
    } else if (pem === undefined) {
      passedOver.push(`${at}: spiffeBundleUrl is not fetched: its roots are not trusted`);
    } else {
      try {
        for (const root of readCertificates(pem)) {
          const problem = issuerProblem(root);
          if (problem === undefined) roots.push(root);
          else passedOver.push(`${at}: ${nameOf(root)} ${problem}`);
        }
      } catch (error) {
        passedOver.push(`${at}: ${messageOf(error)}`);
      }
    }
  });
  return { roots, passedOver };
}
