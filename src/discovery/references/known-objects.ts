/** Which objects are all there: of others, a missing one may exist elsewhere. */
import { onceFor } from '../../model/collections/once-for.ts';
import { type Config, type ConfigKey, configKeyText } from '../../model/config/config.ts';
import type { ConfigSet } from '../../model/config/config-set.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { isSelected, LabelIndex } from '../../model/services/label-match.ts';
import type { Service } from '../../model/services/service.ts';

/** Kinds that others refer to, with those that only clusters or nodes know. */
export type ReferencedKind =
  | ('Service' | 'ServiceEntry' | 'Gateway' | 'KubernetesGateway' | 'VirtualService' | 'ReferenceGrant')
  | 'DestinationRule'
  | (
      | 'Secret'
      | 'ConfigMap'
      | 'Pod'
      | 'GatewayPod'
      | 'WorkloadEntry'
      | 'ExtensionProvider'
      | 'Namespace'
      | 'GatewayClass'
      | 'NetworkGateway'
    );

export interface KnownObjects {
  /** Files describe what is to run; a control plane knows what runs now. */
  readonly areOfFiles: boolean;
  /**
   * Whether an object that is not among the configs does not exist.
   *
   * @param namespace absent: of any namespace
   */
  isComplete(kind: ReferencedKind, namespace?: string): boolean;
  /** Workloads that are connected: they may be no Pods and have no WorkloadEntry. */
  readonly connected?: Iterable<ConnectedWorkload>;
}

export interface ConnectedWorkload {
  readonly shape: Pick<ProxyShape, 'configNamespace' | 'labels'>;
}

/**
 * A control plane has all objects of the mesh, with two exceptions: it reads only Secrets and ConfigMaps that something names to it, and
 * knows workloads of its own cluster only.
 */
export class ObjectsOfControlPlane implements KnownObjects {
  readonly areOfFiles = false;
  readonly connected: Iterable<ConnectedWorkload>;
  readonly #namespacesWithPods: ReadonlySet<string>;
  readonly #hasAllNamespaces: boolean;
  readonly #knowsNamespaces: boolean;

  constructor(
    { Pod, Namespace }: Pick<ConfigSet, 'Pod' | 'Namespace'>,
    { services, mesh }: Pick<PushContext, 'services' | 'mesh'>,
    connected: Iterable<ConnectedWorkload> = [],
  ) {
    this.connected = connected;
    // Workloads of namespaces that are not selected may connect all the same.
    this.#hasAllNamespaces = mesh.discoverySelectors.length === 0;
    const hasOtherClusters = new Set(services.flatMap(({ clusterVIPs = {} }) => Object.keys(clusterVIPs))).size > 1;
    this.#knowsNamespaces = this.#hasAllNamespaces && !hasOtherClusters && areOfCluster(Namespace);
    this.#namespacesWithPods = hasOtherClusters ? new Set() : new Set(Pod.map(({ namespace }) => namespace));
  }

  isComplete(kind: ReferencedKind, namespace = ''): boolean {
    if (kind === 'Secret' || kind === 'ConfigMap') return false;
    if (kind === 'Namespace') return this.#knowsNamespaces;
    if (kind !== 'Pod' && kind !== 'GatewayPod') return true;
    if (namespace !== '') return this.#namespacesWithPods.has(namespace);
    return this.#hasAllNamespaces && this.#namespacesWithPods.size > 0;
  }
}

/**
 * Files have all objects of a kind and namespace if they have one of them, and none that is invalid: others may be in the cluster. References that cannot be
 * checked are noted.
 */
export class ObjectsOfFiles implements KnownObjects {
  readonly areOfFiles = true;
  readonly #known = new Set<string>();
  readonly #namespaces = new Set<string>();
  readonly #rejected = new Set<string>();
  readonly #unchecked = new Set<string>();
  readonly #hasNamespacesOfCluster: boolean;

  /**
   * @param hasMeshConfig whether extension providers are known
   * @param rejected invalid objects: references to them are no fault of their own
   */
  constructor(configs: ConfigSet, hasMeshConfig: boolean, rejected: readonly ConfigKey[] = []) {
    for (const { kind, namespace } of rejected) this.#rejected.add(`${kind} ${namespace}`).add(`${kind} `);
    for (const [kind, all] of Object.entries(configs) as [string, readonly Config[]][]) {
      for (const { namespace } of all) {
        this.#known.add(`${kind} ${namespace}`);
        this.#namespaces.add(namespace);
        this.#known.add(`${kind} `);
      }
    }
    if (haveGateway(configs.Pod, configs.Gateway)) this.#known.add('GatewayPod ');
    this.#known.add('NetworkGateway ');
    this.#hasNamespacesOfCluster = areOfCluster(configs.Namespace);
    if (hasMeshConfig) this.#known.add('ExtensionProvider ');
  }

  isComplete(kind: ReferencedKind, namespace = ''): boolean {
    // Files rarely contain Namespaces: no note.
    if (kind === 'Namespace') return this.#hasNamespacesOfCluster;
    // Who gives the objects of a namespace gives its grants too.
    const isKnown =
      kind === 'ReferenceGrant' ? this.#namespaces.has(namespace) : this.#known.has(`${kind} ${namespace}`);
    if (isKnown && !this.#rejected.has(`${kind} ${namespace}`)) return true;
    this.#unchecked.add(`${kind} ${namespace}`);
    return false;
  }

  /** Sentences about references that were not checked. */
  get notes(): readonly string[] {
    return [...this.#unchecked].sort().map((text) => {
      const [kind = '', namespace = ''] = text.split(' ');
      if (kind === 'ExtensionProvider')
        return 'references to extension providers are not checked: give a valid mesh configuration with --meshConfig';
      if (kind === 'GatewayPod')
        return 'selectors of Gateway objects are not checked: the files contain no Pod of a gateway';
      const of = namespace === '' ? '' : ` of namespace ${namespace}`;
      const written = kind === 'KubernetesGateway' ? 'Gateway (gateway.networking.k8s.io)' : kind;
      const why = this.#rejected.has(text) ? 'the files contain an invalid one' : 'the files contain none';
      return `references to ${written} objects${of} are not checked: ${why}`;
    });
  }
}

/** Whether one of the Pods is a gateway. */
function haveGateway(pods: readonly Config[], gateways: ConfigSet['Gateway']): boolean {
  if (pods.some(isGatewayByItself)) return true;
  const index = new LabelIndex<Config>();
  for (const [id, pod] of pods.entries()) index.put(String(id), pod);
  return gateways.some(({ spec: { selector } }) => Object.keys(selector).length > 0 && index.selectsAny(selector));
}

/** Whether a Gateway selects the Pod, or it is a gateway {@link isGatewayByItself by itself}. */
export function isGatewayPod(pod: Config, gateways: ConfigSet['Gateway']): boolean {
  return (
    isGatewayByItself(pod) ||
    gateways.some(({ spec: { selector } }) => Object.keys(selector).length > 0 && isSelected(selector, pod.labels))
  );
}

/** Whether the Pod has the label `istio` of Istio's charts, or the template of gateways is injected. */
export function isGatewayByItself({ labels, annotations }: Config): boolean {
  if (labels.istio !== undefined && labels.istio !== controlPlaneLabel) return true;
  return annotations['inject.istio.io/templates']?.split(',').includes('gateway') === true;
}

/** Each cluster has this namespace: without it, the objects are some of a file. */
function areOfCluster(namespaces: readonly Config[]): boolean {
  return namespaces.some(({ name }) => name === 'kube-system');
}

/** Of istiod's own Pods. */
const controlPlaneLabel = 'pilot';

/** The object that a service was read from; `undefined` if it is of another cluster. */
export function objectOfService(
  { origin }: Pick<Service, 'origin'>,
  { ServiceEntry, Service }: Pick<ConfigSet, 'ServiceEntry' | 'Service'>,
): Config | undefined {
  const objects: readonly Config[] = origin.kind === 'ServiceEntry' ? ServiceEntry : Service;
  return byKey(objects).get(configKeyText(origin));
}

const byKey = onceFor(
  (configs: readonly Config[]): ReadonlyMap<string, Config> =>
    new Map(configs.map((config) => [configKeyText(config), config])),
);
