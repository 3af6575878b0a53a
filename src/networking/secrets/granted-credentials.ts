import type { Config } from '../../model/config/config.ts';
import type { KubernetesGateway } from '../../model/kinds/gateway-api/kubernetes-gateway.ts';
import type { ReferenceGrants } from '../../model/push-context/reference-grants.ts';
import { type CredentialReference, referencesOfCredential } from './credential-references.ts';

/**
 * Secrets of other namespaces that listeners use. References without a grant are ignored, so that a tenant cannot
 * exhaust the limit of another namespace.
 */
export function grantedCredentials(
  gateways: readonly Config<KubernetesGateway>[],
  grants: ReferenceGrants,
): readonly CredentialReference[] {
  return gateways.flatMap(({ namespace: ownNamespace, spec }) =>
    spec.listeners
      .flatMap(({ tls }) => tls?.certificateRefs ?? [])
      .flatMap(({ group, kind, namespace = ownNamespace, name }) => {
        if (group !== '' || kind !== 'Secret' || namespace === ownNamespace) return [];
        if (!grants.allowsSecret(ownNamespace, namespace, name)) return [];
        return referencesOfCredential(`kubernetes://${namespace}/${name}`, ownNamespace);
      }),
  );
}
