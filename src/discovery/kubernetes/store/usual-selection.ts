/** Which objects of a kind are worth their bytes (spec/kubernetes.md §1, as Istio asks). */
import type { Resource } from '../api-resource.ts';
import type { Selection } from '../api-server.ts';

/**
 * What an informer of the resource asks for, of all namespaces. It must select nothing that objects enter and leave while somebody
 * needs them: what leaves a selection looks deleted.
 */
export function usualSelection({ group, kind }: Resource): Selection {
  if (group === 'apiextensions.k8s.io') return { metadataOnly: true };
  if (group !== '') return {};
  switch (kind) {
    case 'Pod':
      return { fieldSelector: 'status.phase!=Failed' };
    case 'Namespace':
      return { metadataOnly: true };
    case 'Secret':
      // Releases of Helm are large, and tokens of service accounts nobody's business.
      return { fieldSelector: 'type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token' };
    default:
      return {};
  }
}
