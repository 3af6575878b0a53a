import { workloadIdentityOf } from '../../../identity/spiffe-id.ts';
import type { Authenticator } from './authenticator.ts';

/** Accepts only identities of the mesh's trust domain and its aliases. */
export function workloadsOfMesh(authenticator: Authenticator, trustDomains: () => readonly string[]): Authenticator {
  return {
    name: authenticator.name,
    async authenticate(peer) {
      const result = await authenticator.authenticate(peer);
      if ('failure' in result) return result;
      const domains = trustDomains();
      const isMeshUri = (uri: string): boolean => domains.includes(workloadIdentityOf(uri)?.trustDomain ?? '');
      const identities = result.identities.filter(isMeshUri);
      return identities.length > 0
        ? { identities }
        : { failure: `the identity must be of trust domain ${domains.join(' or ')}` };
    },
  };
}
