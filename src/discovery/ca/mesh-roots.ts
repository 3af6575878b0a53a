/**
 * Roots that the mesh configuration adds (`caCertificates`), in a pool for each trust domain of the mesh, its own and its aliases:
 * whatever is in a pool can sign for everybody in it, so the roots of one never sign for another (spec/identity.md §6). Those of other
 * trust domains are not trusted.
 */
import { type Certificate, readCertificates } from '../../identity/certificate.ts';
import { issuerProblem, nameOf } from '../../identity/certificate-path.ts';
import { ownerProblem } from '../../identity/spiffe-bundle.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { trustDomainsOf } from '../../model/mesh/trust-domains.ts';
import { messageOf } from '../../runtime/errors.ts';
import { endpointProblem } from '../bundles/fetch-bundle.ts';

export type RootsInMesh = Pick<MeshConfig, 'caCertificates' | 'trustDomain' | 'trustDomainAliases'>;

export interface RootsOfMesh {
  /** By trust domain: of each of the mesh's. */
  readonly pools: ReadonlyMap<string, readonly Certificate[]>;
  /** What of it is not trusted, and why. */
  readonly passedOver: readonly string[];
}

/** @param fetched from an address, the last good ones */
export function rootsOfMesh(mesh: RootsInMesh, fetched: (url: string) => readonly Certificate[]): RootsOfMesh {
  const ours = trustDomainsOf(mesh);
  const pools = new Map<string, Certificate[]>(ours.map((trustDomain) => [trustDomain, []]));
  const passedOver: string[] = [];
  mesh.caCertificates.forEach(({ pem, spiffeBundleUrl, trustDomains }, i) => {
    const at = `caCertificates[${i}]`;
    const named = trustDomains.length === 0 ? [mesh.trustDomain] : trustDomains;
    const foreign = named.filter((trustDomain) => !pools.has(trustDomain));
    if (foreign.length > 0) {
      passedOver.push(
        `${at}: trust domain ${foreign.join(', ')} is not one of the mesh (trustDomain, trustDomainAliases), so its roots are not trusted`,
      );
    }
    const problem = spiffeBundleUrl === undefined ? undefined : endpointProblem(spiffeBundleUrl);
    if (problem !== undefined) passedOver.push(`${at}: spiffeBundleUrl ${problem}, so its roots are not trusted`);
    const isFetched = spiffeBundleUrl !== undefined;
    const roots = isFetched
      ? fetched(spiffeBundleUrl)
      : rootsIn(pem ?? '', (text) => passedOver.push(`${at}: ${text}`));
    for (const trustDomain of named) {
      // What was fetched for several trust domains may say of which one it is.
      const theirs = isFetched ? roots.filter((root) => ownerProblem(root, [trustDomain]) === undefined) : roots;
      pools.get(trustDomain)?.push(...theirs);
    }
  });
  return { pools, passedOver };
}

function rootsIn(pem: string, passOver: (text: string) => void): readonly Certificate[] {
  try {
    return readCertificates(pem).filter((root) => {
      const problem = issuerProblem(root);
      if (problem !== undefined) passOver(`${nameOf(root)} ${problem.message}`);
      return problem === undefined;
    });
  } catch (error) {
    passOver(messageOf(error));
    return [];
  }
}
