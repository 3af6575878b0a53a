import { PersistentMap } from '../../collections/persistent-map.ts';
import { type Config, compareText } from '../../config/config.ts';
import type { KubernetesNode } from '../../kinds/kubernetes/node.ts';
import type { KubernetesPod } from '../../kinds/kubernetes/pod.ts';
import { addressIn } from '../namespaced-address.ts';
import { sameWorkload, type Workload, type WorkloadEvent } from '../workload.ts';
import type { ClusterNetworks } from './networks.ts';
import { podWorkload } from './pod-workload.ts';
import { UsageIndex } from './usage-index.ts';

export interface PodOptions {
  readonly trustDomain: string;
  readonly clusterId: string;
}

export class Pods {
  readonly #options: PodOptions;
  readonly #objects = new Map<string, Config<KubernetesPod>>();
  readonly #nodes = new Map<string, Config<KubernetesNode>>();
  #podList: readonly Config<KubernetesPod>[] | undefined;
  #nodeList: readonly Config<KubernetesNode>[] | undefined;
  readonly #podsByNode = new UsageIndex();
  workloadsByName = PersistentMap.empty<Workload>();
  /** Pods by {@link addressIn}; pods with host networking have their node's address. */
  workloadsByAddress = PersistentMap.empty<readonly Workload[]>();

  constructor(options: PodOptions) {
    this.#options = options;
  }

  /** The same list until a pod changes. */
  get pods(): readonly Config<KubernetesPod>[] {
    this.#podList ??= [...this.#objects.values()];
    return this.#podList;
  }

  /** The same list until a node changes. */
  get nodes(): readonly Config<KubernetesNode>[] {
    this.#nodeList ??= [...this.#nodes.values()];
    return this.#nodeList;
  }

  pod(id: string): Config<KubernetesPod> | undefined {
    return this.#objects.get(id);
  }

  node(name: string | undefined): Config<KubernetesNode> | undefined {
    return name === undefined ? undefined : this.#nodes.get(name);
  }

  /** Call {@link renew} afterwards to build the pod's workload. */
  setPod(id: string, config: Config<KubernetesPod> | undefined): void {
    this.#podList = undefined;
    const nodesOf = (podConfig: Config<KubernetesPod> | undefined): ReadonlySet<string> =>
      new Set(podConfig === undefined ? [] : [podConfig.spec.spec.nodeName]);
    this.#podsByNode.setUsedKeys(id, nodesOf(this.#objects.get(id)), nodesOf(config));
    if (config === undefined) this.#objects.delete(id);
    else this.#objects.set(id, config);
  }

  setNode(
    name: string,
    config: Config<KubernetesNode> | undefined,
  ): { readonly differs: boolean; readonly pods: Iterable<string> } {
    const previous = this.#nodes.get(name);
    this.#nodeList = undefined;
    if (config === undefined) this.#nodes.delete(name);
    else this.#nodes.set(name, config);
    const text = (node: Config<KubernetesNode> | undefined): string => JSON.stringify([node?.labels, node?.spec]);
    return { differs: text(previous) !== text(config), pods: this.#podsByNode.usersOf(name) };
  }

  names(): Iterable<string> {
    return this.#objects.keys();
  }

  /**
   * @param isNamespaceVisible whether the pod's namespace is part of the mesh
   * @returns `undefined` if the workload is unchanged
   */
  renew(
    id: string,
    networks: ClusterNetworks,
    isNamespaceVisible: (namespace: string) => boolean,
  ): WorkloadEvent | undefined {
    const config = this.#objects.get(id);
    const previous = this.workloadsByName.get(id);
    const node = this.node(config?.spec.spec.nodeName);
    const current =
      config && isNamespaceVisible(config.namespace)
        ? podWorkload(config, { ...this.#options, networks, node })
        : undefined;
    if (sameWorkload(previous, current)) return undefined;
    this.workloadsByName =
      current === undefined ? this.workloadsByName.withoutKey(id) : this.workloadsByName.with(id, current);
    const { namespace } = (current ?? previous)!;
    for (const address of previous?.addresses ?? [])
      this.#updateAddresses(addressIn(namespace, address), previous!, undefined);
    for (const address of current?.addresses ?? [])
      this.#updateAddresses(addressIn(namespace, address), undefined, current);
    return { previous, current };
  }

  workloadAt(namespace: string, address: string): Workload | undefined {
    return singleWorkloadAt(this.workloadsByAddress, namespace, address);
  }

  #updateAddresses(key: string, removedWorkload: Workload | undefined, addedWorkload: Workload | undefined): void {
    const otherWorkloads = (this.workloadsByAddress.get(key) ?? []).filter((workload) => workload !== removedWorkload);
    const current =
      addedWorkload === undefined ? otherWorkloads : [...otherWorkloads, addedWorkload].sort(compareByName);
    this.workloadsByAddress =
      current.length === 0 ? this.workloadsByAddress.withoutKey(key) : this.workloadsByAddress.with(key, current);
  }
}

/** @param pods by {@link addressIn} */
export function singleWorkloadAt(
  pods: ReadonlyMap<string, readonly Workload[]>,
  namespace: string,
  address: string,
): Workload | undefined {
  const addressPods = pods.get(addressIn(namespace, address)) ?? [];
  return addressPods.length === 1 ? addressPods[0] : undefined;
}

function compareByName(a: Workload, b: Workload): number {
  return compareText(a.name, b.name);
}
