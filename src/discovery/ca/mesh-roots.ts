/**
 * The mesh configuration adds roots (`caCertificates`) to the pools of its trust domain and aliases. Roots of one trust domain never verify
 * identities of another.
 */
import { type Certificate, readCertificates } from '../../identity/certificate.ts';
import { displayNameOf, issuerProblem } from '../../identity/certificate-path.ts';
import { ownerProblem } from '../../identity/spiffe-bundle.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { trustDomainsOf } from '../../model/mesh/trust-domains.ts';
import { messageOf } from '../../runtime/errors.ts';
import { endpointProblem } from '../bundles/fetch-bundle.ts';

export type RootsInMesh = Pick<MeshConfig, 'caCertificates' | 'trustDomain' | 'trustDomainAliases'>;

export interface RootsOfMesh {
  readonly pools: ReadonlyMap<string, readonly Certificate[]>;
  /** Untrusted entries with reasons. */
  readonly ignoredRoots: readonly string[];
}

/** @param fetchedRootsOf last valid roots of an endpoint URL */
export function rootsOfMesh(mesh: RootsInMesh, fetchedRootsOf: (url: string) => readonly Certificate[]): RootsOfMesh {
  const meshDomains = trustDomainsOf(mesh);
  const pools = new Map<string, Certificate[]>(meshDomains.map((trustDomain) => [trustDomain, []]));
  const ignoredRoots: string[] = [];
  mesh.caCertificates.forEach(({ pem, spiffeBundleUrl, trustDomains }, i) => {
    const fieldName = `caCertificates[${i}]`;
    const namedDomains = trustDomains.length === 0 ? [mesh.trustDomain] : trustDomains;
    const foreignDomains = namedDomains.filter((trustDomain) => !pools.has(trustDomain));
    if (foreignDomains.length > 0) {
      ignoredRoots.push(
        `${fieldName}: trust domain ${foreignDomains.join(', ')} is not one of the mesh (trustDomain, trustDomainAliases), so its roots are not trusted`,
      );
    }
    const problem = spiffeBundleUrl === undefined ? undefined : endpointProblem(spiffeBundleUrl);
    if (problem !== undefined)
      ignoredRoots.push(`${fieldName}: spiffeBundleUrl ${problem}, so its roots are not trusted`);
    const isBundleFetched = spiffeBundleUrl !== undefined;
    const roots = isBundleFetched
      ? fetchedRootsOf(spiffeBundleUrl)
      : rootsIn(pem ?? '', (text) => ignoredRoots.push(`${fieldName}: ${text}`));
    for (const trustDomain of namedDomains) {
      // A fetched root may name the trust domain that it belongs to.
      const domainRoots = isBundleFetched
        ? roots.filter((root) => ownerProblem(root, [trustDomain]) === undefined)
        : roots;
      pools.get(trustDomain)?.push(...domainRoots);
    }
  });
  return { pools, ignoredRoots };
}

function rootsIn(pem: string, ignore: (text: string) => void): readonly Certificate[] {
  try {
    return readCertificates(pem).filter((root) => {
      const problem = issuerProblem(root);
      if (problem !== undefined) ignore(`${displayNameOf(root)} ${problem.message}`);
      return problem === undefined;
    });
  } catch (error) {
    ignore(messageOf(error));
    return [];
  }
}
