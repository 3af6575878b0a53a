/** Only the Secrets and ConfigMaps to which an object refers are read from a cluster. */
import type { Config } from '../../model/config/config.ts';
import type { WasmPlugin } from '../../model/kinds/extensions/wasm-plugin.ts';
import type { Gateway } from '../../model/kinds/gateway/gateway.ts';
import type { BackendTlsPolicy } from '../../model/kinds/gateway-api/backend-tls-policy.ts';
import type { KubernetesGateway } from '../../model/kinds/gateway-api/kubernetes-gateway.ts';
import type { Ingress } from '../../model/kinds/kubernetes/ingress.ts';
import { type CredentialName, credentialsOfServer, parseCredentialName, rootsObjectName } from './credential-name.ts';

export interface CredentialReference {
  readonly kind: CredentialName['kind'];
  readonly namespace: string;
  readonly name: string;
}

/**
 * References to the object's own namespace, which is the default of its gateways. References by gateways of other namespaces are known from their
 * requests.
 */
export function credentialsReferencedBy(config: Config): readonly CredentialReference[] {
  const { kind, namespace } = config;
  switch (kind) {
    case 'Gateway':
      return (config as Config<Gateway>).spec.servers.flatMap(({ tls }) =>
        tls === undefined ? [] : credentialsOfServer(tls).flatMap((name) => referencesOfCredential(name, namespace)),
      );
    case 'KubernetesGateway':
      return (config as Config<KubernetesGateway>).spec.listeners
        .flatMap(({ tls }) => tls?.certificateRefs ?? [])
        .filter((ref) => ref.group === '' && ref.kind === 'Secret' && (ref.namespace ?? namespace) === namespace)
        .flatMap(({ name }) => referencesOfCredential(`kubernetes://${name}`, namespace));
    case 'BackendTLSPolicy':
      return (config as Config<BackendTlsPolicy>).spec.validation.caCertificateRefs
        .filter((ref) => ref.group === '' && ref.kind === 'ConfigMap')
        .map(({ name }) => ({ kind: 'ConfigMap', namespace, name }));
    case 'Ingress':
      return (config as Config<Ingress>).spec.spec.tls.flatMap(({ secretName }) =>
        secretName ? referencesOfCredential(`kubernetes://${secretName}`, namespace) : [],
      );
    case 'WasmPlugin': {
      const name = (config as Config<WasmPlugin>).spec.imagePullSecret;
      return name ? [{ kind: 'Secret', namespace, name }] : [];
    }
    default:
      return [];
  }
}

/**
 * The objects from which an SDS resource may be built. CA certificates may be in a separate object or in that of the
 * certificate.
 *
 * @param ownNamespace default namespace
 */
export function referencesOfCredential(resourceName: string, ownNamespace: string): readonly CredentialReference[] {
  const credential = parseCredentialName(resourceName, ownNamespace);
  if (credential === undefined) return [];
  const { kind, namespace, name, roots } = credential;
  const reference = { kind, namespace, name };
  return kind === 'Secret' && roots ? [reference, { ...reference, name: rootsObjectName(name) }] : [reference];
}
