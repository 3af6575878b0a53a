/** If not all objects of a kind are known, a missing object may exist elsewhere. */
import { memoizeByObject } from '../../model/collections/memoize-by-object.ts';
import { type Config, type ConfigKey, configKeyText } from '../../model/config/config.ts';
import type { ConfigSet } from '../../model/config/config-set.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { LabelIndex, matchesSelector } from '../../model/services/label-match.ts';
import type { Service } from '../../model/services/service.ts';

/** Includes kinds that only a cluster or node knows. */
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
  /** Whether the objects are from files, which describe future workloads. A control plane knows running ones. */
  readonly areFromFiles: boolean;
  /**
   * If true, an object of the kind that the configs do not contain does not exist.
   *
   * @param namespace absent for any namespace
   */
  isComplete(kind: ReferencedKind, namespace?: string): boolean;
  /** Connected workloads, some of which have neither a Pod nor a WorkloadEntry. */
  readonly connectedWorkloads?: Iterable<ConnectedWorkload>;
}

export interface ConnectedWorkload {
  readonly shape: Pick<ProxyShape, 'configNamespace' | 'labels'>;
}

/**
 * A control plane has all objects of the mesh, with two exceptions: it reads only referenced Secrets and ConfigMaps, and knows only workloads of its
 * own cluster.
 */
export class ObjectsOfControlPlane implements KnownObjects {
  readonly areFromFiles = false;
  readonly connectedWorkloads: Iterable<ConnectedWorkload>;
  readonly #namespacesWithPods: ReadonlySet<string>;
  readonly #hasAllNamespaces: boolean;
  readonly #knowsNamespaces: boolean;

  constructor(
    { Pod, Namespace }: Pick<ConfigSet, 'Pod' | 'Namespace'>,
    { services, mesh }: Pick<PushContext, 'services' | 'mesh'>,
    connectedWorkloads: Iterable<ConnectedWorkload> = [],
  ) {
    this.connectedWorkloads = connectedWorkloads;
    // Workloads of unselected namespaces can connect too.
    this.#hasAllNamespaces = mesh.discoverySelectors.length === 0;
    const hasSeveralClusters = new Set(services.flatMap(({ clusterVIPs = {} }) => Object.keys(clusterVIPs))).size > 1;
    this.#knowsNamespaces = this.#hasAllNamespaces && !hasSeveralClusters && areOfCluster(Namespace);
    this.#namespacesWithPods = hasSeveralClusters ? new Set() : new Set(Pod.map(({ namespace }) => namespace));
  }

  isComplete(kind: ReferencedKind, namespace = ''): boolean {
    if (kind === 'Secret' || kind === 'ConfigMap') return false;
    if (kind === 'Namespace') return this.#knowsNamespaces;
    if (kind !== 'Pod' && kind !== 'GatewayPod') return true;
    if (namespace !== '') return this.#namespacesWithPods.has(namespace);
    return this.#hasAllNamespaces && this.#namespacesWithPods.size > 0;
  }
}

/** Files are complete for a kind and namespace if they contain such an object and no invalid one; otherwise objects may be in the cluster. */
export class ObjectsOfFiles implements KnownObjects {
  readonly areFromFiles = true;
  readonly #knownKeys = new Set<string>();
  readonly #namespaces = new Set<string>();
  readonly #rejectedKeys = new Set<string>();
  readonly #uncheckedKinds = new Set<string>();
  readonly #hasNamespacesOfCluster: boolean;

  /**
   * @param hasMeshConfig whether extension providers are known
   * @param rejectedKeys invalid objects, which exist and so are not missing
   */
  constructor(configs: ConfigSet, hasMeshConfig: boolean, rejectedKeys: readonly ConfigKey[] = []) {
    for (const { kind, namespace } of rejectedKeys) this.#rejectedKeys.add(`${kind} ${namespace}`).add(`${kind} `);
    for (const [kind, all] of Object.entries(configs) as [string, readonly Config[]][]) {
      for (const { namespace } of all) {
        this.#knownKeys.add(`${kind} ${namespace}`);
        this.#namespaces.add(namespace);
        this.#knownKeys.add(`${kind} `);
      }
    }
    if (haveGateway(configs.Pod, configs.Gateway)) this.#knownKeys.add('GatewayPod ');
    this.#knownKeys.add('NetworkGateway ');
    this.#hasNamespacesOfCluster = areOfCluster(configs.Namespace);
    if (hasMeshConfig) this.#knownKeys.add('ExtensionProvider ');
  }

  isComplete(kind: ReferencedKind, namespace = ''): boolean {
    // Files rarely contain Namespaces, so these are not reported as unchecked.
    if (kind === 'Namespace') return this.#hasNamespacesOfCluster;
    // Files with objects of a namespace are expected to contain its ReferenceGrants.
    const isKnown =
      kind === 'ReferenceGrant' ? this.#namespaces.has(namespace) : this.#knownKeys.has(`${kind} ${namespace}`);
    if (isKnown && !this.#rejectedKeys.has(`${kind} ${namespace}`)) return true;
    this.#uncheckedKinds.add(`${kind} ${namespace}`);
    return false;
  }

  get skippedChecks(): readonly string[] {
    return [...this.#uncheckedKinds].sort().map((text) => {
      const [kind = '', namespace = ''] = text.split(' ');
      if (kind === 'ExtensionProvider')
        return 'references to extension providers are not checked: give a valid mesh configuration with --meshConfig';
      if (kind === 'GatewayPod')
        return 'selectors of Gateway objects are not checked: the files contain no Pod of a gateway';
      const namespaceText = namespace === '' ? '' : ` of namespace ${namespace}`;
      const kindText = kind === 'KubernetesGateway' ? 'Gateway (gateway.networking.k8s.io)' : kind;
      const reason = this.#rejectedKeys.has(text) ? 'the files contain an invalid one' : 'the files contain none';
      return `references to ${kindText} objects${namespaceText} are not checked: ${reason}`;
    });
  }
}

function haveGateway(pods: readonly Config[], gateways: ConfigSet['Gateway']): boolean {
  if (pods.some(isGatewayByItself)) return true;
  const index = new LabelIndex<Config>();
  for (const [id, pod] of pods.entries()) index.put(String(id), pod);
  return gateways.some(({ spec: { selector } }) => Object.keys(selector).length > 0 && index.selectsAny(selector));
}

export function isGatewayPod(pod: Config, gateways: ConfigSet['Gateway']): boolean {
  return (
    isGatewayByItself(pod) ||
    gateways.some(({ spec: { selector } }) => Object.keys(selector).length > 0 && matchesSelector(selector, pod.labels))
  );
}

/** A Pod is a gateway if it has the label `istio` of Istio's charts, or uses the gateway template of the injector. */
export function isGatewayByItself({ labels, annotations }: Config): boolean {
  if (labels.istio !== undefined && labels.istio !== controlPlaneLabel) return true;
  return annotations['inject.istio.io/templates']?.split(',').includes('gateway') === true;
}

/** Each cluster has this Namespace. */
function areOfCluster(namespaces: readonly Config[]): boolean {
  return namespaces.some(({ name }) => name === 'kube-system');
}

/** Value of the label `istio` on Pods of istiod. */
const controlPlaneLabel = 'pilot';

/** `undefined` for a service of another cluster. */
export function objectOfService(
  { origin }: Pick<Service, 'origin'>,
  { ServiceEntry, Service }: Pick<ConfigSet, 'ServiceEntry' | 'Service'>,
): Config | undefined {
  const objects: readonly Config[] = origin.kind === 'ServiceEntry' ? ServiceEntry : Service;
  return configByKey(objects).get(configKeyText(origin));
}

const configByKey = memoizeByObject(
  (configs: readonly Config[]): ReadonlyMap<string, Config> =>
    new Map(configs.map((config) => [configKeyText(config), config])),
);
