/** Selects the objects of a kind that are used, as Istio does. */
import type { ApiResource } from '../api-resource.ts';
import type { ObjectSelection } from '../api-server.ts';

/**
 * Selection for an informer of all namespaces. A used object must never leave the selection, because that looks like
 * a deletion.
 */
export function defaultSelection({ group, kind }: ApiResource): ObjectSelection {
  if (group === 'apiextensions.k8s.io') return { metadataOnly: true };
  if (group !== '') return {};
  switch (kind) {
    case 'Pod':
      return { fieldSelector: 'status.phase!=Failed' };
    case 'Namespace':
      return { metadataOnly: true };
    case 'Secret':
      // Helm releases are large, and service account tokens are unused.
      return { fieldSelector: 'type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token' };
    default:
      return {};
  }
}
