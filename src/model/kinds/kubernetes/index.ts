import { type Decoder, decodeWith } from '../../fields/decode.ts';
import type { Kind } from '../kind.ts';
import { type ConfigMap, configMap } from './config-map.ts';
import { credentialWarnings } from './credential.ts';
import { type EndpointSlice, endpointSlice } from './endpoint-slice.ts';
import { type Endpoints, endpoints } from './endpoints.ts';
import { type Ingress, type IngressClass, ingress, ingressClass, ingressWarnings } from './ingress.ts';
import { partialStruct } from './lenient.ts';
import { type KubernetesNode, node } from './node.ts';
import { type KubernetesPod, pod } from './pod.ts';
import { type Secret, secret } from './secret.ts';
import { type KubernetesService, kubernetesService } from './service.ts';

/** Only the labels of a namespace are used, and they are in the metadata. */
export type Namespace = Record<never, never>;

export interface SpecOfKubernetesKind {
  readonly ConfigMap: ConfigMap;
  readonly Endpoints: Endpoints;
  readonly EndpointSlice: EndpointSlice;
  readonly Ingress: Ingress;
  readonly IngressClass: IngressClass;
  readonly Namespace: Namespace;
  readonly Node: KubernetesNode;
  readonly Pod: KubernetesPod;
  readonly Secret: Secret;
  readonly Service: KubernetesService;
}

function kindRow<Name extends string, Spec>(
  kind: Name,
  plural: string,
  decoder: Decoder<Spec>,
  extraOptions: Partial<Pick<Kind<Name, Spec>, 'group' | 'versions' | 'scope' | 'warnings'>> = {},
): Kind<Name, Spec> {
  return {
    ...{ kind, plural, group: '', versions: ['v1'], scope: 'Namespaced', body: 'object' },
    warnings: () => [],
    ...extraOptions,
    decoder,
    decode: (body) => decodeWith(decoder, body),
  };
}

export const kubernetesKinds: {
  readonly [K in keyof SpecOfKubernetesKind]: Kind<K, SpecOfKubernetesKind[K]>;
} = {
  ConfigMap: kindRow('ConfigMap', 'configmaps', configMap),
  Endpoints: kindRow('Endpoints', 'endpoints', endpoints),
  EndpointSlice: kindRow('EndpointSlice', 'endpointslices', endpointSlice, {
    group: 'discovery.k8s.io',
    versions: ['v1', 'v1beta1'],
  }),
  Ingress: kindRow('Ingress', 'ingresses', ingress, { group: 'networking.k8s.io', warnings: ingressWarnings }),
  IngressClass: kindRow('IngressClass', 'ingressclasses', ingressClass, {
    group: 'networking.k8s.io',
    scope: 'Cluster',
  }),
  Namespace: kindRow('Namespace', 'namespaces', partialStruct<Namespace>({}, ['spec', 'status']), { scope: 'Cluster' }),
  Node: kindRow('Node', 'nodes', node, { scope: 'Cluster' }),
  Pod: kindRow('Pod', 'pods', pod),
  Secret: kindRow('Secret', 'secrets', secret, { warnings: credentialWarnings }),
  Service: kindRow('Service', 'services', kubernetesService),
};
