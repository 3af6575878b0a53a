/** Which objects are all there: of others, a missing one may exist elsewhere. */
import { onceFor } from '../../model/collections/once-for.ts';
import { type Config, configKeyOf, configKeyText } from '../../model/config/config.ts';
import type { ConfigSet } from '../../model/config/config-set.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { Service } from '../../model/services/service.ts';

/** Kinds that others refer to, with those that only clusters or nodes know. */
export type ReferencedKind =
  | ('Service' | 'ServiceEntry' | 'Gateway' | 'KubernetesGateway' | 'VirtualService' | 'ReferenceGrant')
  | ('Secret' | 'ConfigMap' | 'Pod' | 'ExtensionProvider' | 'GatewayClass' | 'NetworkGateway');

export interface KnownObjects {
  /** Files describe what is to run; a control plane knows what runs now. */
  readonly areOfFiles: boolean;
  /**
   * Whether an object that is not among the configs does not exist.
   *
   * @param namespace absent: of any namespace
   */
  isComplete(kind: ReferencedKind, namespace?: string): boolean;
}

/**
 * A control plane has all objects of the mesh, with two exceptions: it reads only Secrets and ConfigMaps that something names to it, and
 * knows workloads of its own cluster only.
 */
export class ObjectsOfControlPlane implements KnownObjects {
  readonly areOfFiles = false;
  readonly #namespacesWithPods: ReadonlySet<string>;

  constructor({ Pod }: Pick<ConfigSet, 'Pod'>, { services }: Pick<PushContext, 'services'>) {
    const hasOtherClusters = new Set(services.flatMap(({ clusterVIPs = {} }) => Object.keys(clusterVIPs))).size > 1;
    this.#namespacesWithPods = hasOtherClusters ? new Set() : new Set(Pod.map(({ namespace }) => namespace));
  }

  isComplete(kind: ReferencedKind, namespace = ''): boolean {
    if (kind === 'Secret' || kind === 'ConfigMap') return false;
    if (kind !== 'Pod') return true;
    return namespace === '' ? this.#namespacesWithPods.size > 0 : this.#namespacesWithPods.has(namespace);
  }
}

/**
 * Files have all objects of a kind and namespace if they have one of them: others may be in the cluster. References that cannot be
 * checked are noted.
 */
export class ObjectsOfFiles implements KnownObjects {
  readonly areOfFiles = true;
  readonly #known = new Set<string>();
  readonly #namespaces = new Set<string>();
  readonly #unchecked = new Set<string>();

  /** @param hasMeshConfig whether extension providers are known */
  constructor(configs: ConfigSet, hasMeshConfig: boolean) {
    for (const [kind, all] of Object.entries(configs) as [string, readonly Config[]][]) {
      for (const { namespace } of all) {
        this.#known.add(`${kind} ${namespace}`);
        this.#namespaces.add(namespace);
        this.#known.add(`${kind} `);
      }
    }
    this.#known.add('NetworkGateway ');
    if (hasMeshConfig) this.#known.add('ExtensionProvider ');
  }

  isComplete(kind: ReferencedKind, namespace = ''): boolean {
    // Who gives the objects of a namespace gives its grants too.
    const isKnown =
      kind === 'ReferenceGrant' ? this.#namespaces.has(namespace) : this.#known.has(`${kind} ${namespace}`);
    if (isKnown) return true;
    this.#unchecked.add(`${kind} ${namespace}`);
    return false;
  }

  /** Sentences about references that were not checked. */
  get notes(): readonly string[] {
    return [...this.#unchecked].sort().map((text) => {
      const [kind = '', namespace = ''] = text.split(' ');
      if (kind === 'ExtensionProvider')
        return 'references to extension providers are not checked: give the mesh configuration with --meshConfig';
      const of = namespace === '' ? '' : ` of namespace ${namespace}`;
      const written = kind === 'KubernetesGateway' ? 'Gateway (gateway.networking.k8s.io)' : kind;
      return `references to ${written} objects${of} are not checked: the files contain none`;
    });
  }
}

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
    new Map(configs.map((config) => [configKeyText(configKeyOf(config)), config])),
);
