/** Of what callers show, the workloads of this mesh: whoever is somebody elsewhere is nobody here. */
import { workloadIdentityOf } from '../../../identity/spiffe-id.ts';
import type { Authenticator } from './authenticator.ts';

/**
 * The same authenticator, whose identities are workloads of these trust domains: the mesh's own and its aliases. A root that signs
 * for several domains, or a gateway that forwards whatever it was shown, makes nobody of another domain one of ours.
 *
 * @param trustDomains of the mesh, now
 */
export function workloadsOfMesh(authenticator: Authenticator, trustDomains: () => readonly string[]): Authenticator {
  return {
    name: authenticator.name,
    async authenticate(peer) {
      const answer = await authenticator.authenticate(peer);
      if ('failure' in answer) return answer;
      const domains = trustDomains();
      const isOurs = (uri: string): boolean => domains.includes(workloadIdentityOf(uri)?.trustDomain ?? '');
      const identities = answer.identities.filter(isOurs);
      return identities.length > 0
        ? { identities }
        : { failure: `the identity must be of trust domain ${domains.join(' or ')}` };
    },
  };
}
