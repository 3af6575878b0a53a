/** Services and endpoints of one Kubernetes cluster, updated incrementally. Objects come from files or a live cluster. */
import { runToEnd, type Steps } from '../../../runtime/turns.ts';
import type { Config } from '../../config/config.ts';
import type { EndpointSlice } from '../../kinds/kubernetes/endpoint-slice.ts';
import type { Endpoints } from '../../kinds/kubernetes/endpoints.ts';
import type { KubernetesNode } from '../../kinds/kubernetes/node.ts';
import type { KubernetesPod } from '../../kinds/kubernetes/pod.ts';
import type { KubernetesService } from '../../kinds/kubernetes/service.ts';
import type { LabelSelector } from '../../kinds/label-selector.ts';
import { LabelIndex, SelectorIndex } from '../label-match.ts';
import { addressIn } from '../namespaced-address.ts';
import { gatewaysOfService, type NetworkGateway } from '../network-gateways.ts';
import { AddressBook } from '../proxy-lookup.ts';
import { type ConfigObjectChange, type RegistryDelta, reuseServices, type ServiceDelta } from '../registry-delta.ts';
import { reuseEndpoints, sameLabels } from '../same-endpoint.ts';
import type { Endpoint, Service } from '../service.ts';
import { mayExport } from '../visibility.ts';
import {
  compareWorkloadAge,
  type EndpointTemplate,
  endpointOf,
  portNamed,
  type Workload,
  type WorkloadEvent,
  workloadId,
} from '../workload.ts';
import { convertService, hasSelector, nodeSelectorOf } from './convert-service.ts';
import { isDiscovered } from './discovery-namespaces.ts';
import { KubernetesLookup, type SelectingService, targetPortOf } from './kubernetes-lookup.ts';
import type { KubernetesOptions } from './kubernetes-options.ts';
import { ClusterNetworks } from './networks.ts';
import { nodeLocality } from './pod-workload.ts';
import { Pods } from './pods.ts';
import { ServiceSlices } from './service-slices.ts';
import { sliceEndpoints } from './slice-endpoints.ts';
import { UsageIndex } from './usage-index.ts';

interface ServiceRecord {
  /** Absent only in {@link emptyRecord}. */
  readonly config?: Config<KubernetesService>;
  readonly services: readonly Service[];
  readonly endpoints: readonly Endpoint[];
  /** Endpoints that are not pods of this cluster. Some may be proxies, which are found by address. */
  readonly foreignEndpoints: readonly Endpoint[];
  readonly usedKeys: ReadonlySet<string>;
  readonly pendingPods: readonly string[];
  readonly bareAddresses: readonly string[];
  readonly selecting?: {
    readonly id: string;
    readonly selector: Readonly<Record<string, string>>;
    readonly item: SelectingService;
  };
}

const emptyRecord: ServiceRecord = {
  services: [],
  endpoints: [],
  foreignEndpoints: [],
  usedKeys: new Set(),
  pendingPods: [],
  bareAddresses: [],
};

export interface KubernetesDelta extends RegistryDelta {
  /** Addresses of pods that are new, or whose labels or locality changed: their proxies need a push. */
  readonly proxies: readonly string[];
}

export interface KubernetesWorkloads {
  readonly pods: readonly Config<KubernetesPod>[];
  readonly nodes: readonly Config<KubernetesNode>[];
}

export const kubernetesServiceKinds: ReadonlySet<string> = new Set([
  ...['Service', 'Endpoints', 'EndpointSlice', 'Pod', 'Node', 'Namespace'],
]);

export class KubernetesServices {
  readonly #options: KubernetesOptions & { readonly discoverySelectors: readonly LabelSelector[] };
  readonly #pods: Pods;
  readonly #services = new Map<string, Config<KubernetesService>>();
  readonly #slices = new ServiceSlices();
  readonly #namespaces = new Map<string, Config>();
  readonly #workloads = new Map<string, LabelIndex<Workload>>();
  readonly #records = new Map<string, ServiceRecord>();
  readonly #users = new UsageIndex();
  #networks: ClusterNetworks;
  #selectors = new SelectorIndex<SelectingService>();
  #addresses = new AddressBook();

  constructor(options: KubernetesOptions & { readonly discoverySelectors: readonly LabelSelector[] }) {
    this.#options = options;
    this.#pods = new Pods(options);
    this.#networks = new ClusterNetworks(options.networks, options.clusterId, '');
  }

  /** Returns the last received Service, EndpointSlice, Pod, Node or Namespace. */
  objectOf(key: string): Config | undefined {
    const end = key.indexOf('/');
    const id = key.slice(end + 1);
    switch (key.slice(0, end)) {
      case 'Pod':
        return this.#pods.pod(id);
      case 'Node':
        return this.#pods.node(id.slice(1));
      case 'EndpointSlice':
        return this.#slices.slice(id);
      case 'Service':
        return this.#services.get(id);
      case 'Namespace':
        return this.#namespaces.get(id.slice(1));
      default:
        return undefined;
    }
  }

  *objects(): Iterable<Config> {
    yield* this.#pods.pods;
    yield* this.#pods.nodes;
    yield* this.#slices.allSlices();
  }

  get workloads(): KubernetesWorkloads {
    return this.#pods;
  }

  *services(): Iterable<Service> {
    for (const { services } of this.#records.values()) yield* services;
  }

  servicesOf(hostname: string, namespace: string): readonly Service[] {
    const suffix = `.${namespace}.svc.${this.#options.domain}`;
    if (!hostname.endsWith(suffix)) return [];
    return this.#records.get(`${namespace}/${hostname.slice(0, -suffix.length)}`)?.services ?? [];
  }

  *networkGateways(): Iterable<NetworkGateway> {
    for (const service of this.services())
      if (mayExport(service.namespace, this.#options)) yield* gatewaysOfService(service);
  }

  get lookup(): KubernetesLookup {
    return new KubernetesLookup({
      clusterId: this.#options.clusterId,
      pods: this.#pods.workloadsByName,
      podsByAddress: this.#pods.workloadsByAddress,
      selectors: this.#selectors,
      addresses: this.#addresses,
    });
  }

  get counts(): { readonly pendingPods: number; readonly endpointsWithoutPod: number } {
    const pendingPodNames = new Set<string>();
    let unmatchedAddressCount = 0;
    for (const record of this.#records.values()) {
      for (const pod of record.pendingPods) pendingPodNames.add(pod);
      unmatchedAddressCount += record.bareAddresses.length;
    }
    return { pendingPods: pendingPodNames.size, endpointsWithoutPod: unmatchedAddressCount };
  }

  /**
   * @param changes of {@link kubernetesServiceKinds}; other kinds are ignored
   * @param workloads added, removed or changed WorkloadEntries
   */
  apply(changes: readonly ConfigObjectChange<Config>[], workloads: readonly WorkloadEvent[] = []): KubernetesDelta {
    return runToEnd(this.applyInSteps(changes, workloads));
  }

  /** Between the steps, look-ups may mix previous and new states. */
  *applyInSteps(
    changes: readonly ConfigObjectChange<Config>[],
    workloads: readonly WorkloadEvent[] = [],
  ): Steps<KubernetesDelta> {
    const dirtyServices = new Set<string>();
    const pods = new Set<string>();
    const needsFullRebuild = this.#applyNamespaces(changes);
    for (const change of changes) {
      this.#storeObject(change, dirtyServices, pods);
      yield;
    }
    if (needsFullRebuild) {
      for (const id of this.#pods.names()) pods.add(id);
      for (const id of this.#services.keys()) dirtyServices.add(id);
    }
    const events: WorkloadEvent[] = [];
    for (const id of pods) {
      const event = this.#pods.renew(id, this.#networks, this.#isNamespaceVisible);
      if (event !== undefined) events.push(event);
      yield;
    }
    for (const event of events) {
      this.#markServicesUsing(event, dirtyServices);
      yield;
    }
    for (const event of this.#options.selectWorkloadEntries ? workloads : []) {
      this.#markServicesSelecting(event, dirtyServices);
      yield;
    }
    const services: ServiceDelta[] = [];
    for (const id of dirtyServices) {
      const delta = this.#rebuildService(id);
      if (delta !== undefined) services.push(delta);
      yield;
    }
    return { services, workloads: events, proxies: events.flatMap(proxiesOf) };
  }

  readonly #isNamespaceVisible = (namespace: string): boolean =>
    isDiscovered(namespace, this.#namespaces.get(namespace)?.labels, this.#options.discoverySelectors);

  /** Returns whether the set of namespaces or the cluster's network changed. */
  #applyNamespaces(changes: readonly ConfigObjectChange<Config>[]): boolean {
    const changedNamespaces = changes.filter(({ key }) => key.kind === 'Namespace');
    if (changedNamespaces.length === 0) return false;
    const names = changedNamespaces.map(({ key }) => key.name);
    const previousVisibility = names.map(this.#isNamespaceVisible).join();
    const { systemNamespace, networks, clusterId } = this.#options;
    const label = (): string => this.#namespaces.get(systemNamespace)?.labels['topology.istio.io/network'] ?? '';
    const oldLabel = label();
    for (const { key, current } of changedNamespaces) {
      if (current === undefined) this.#namespaces.delete(key.name);
      else this.#namespaces.set(key.name, current);
    }
    if (label() !== oldLabel) this.#networks = new ClusterNetworks(networks, clusterId, label());
    return label() !== oldLabel || names.map(this.#isNamespaceVisible).join() !== previousVisibility;
  }

  #storeObject({ key, current }: ConfigObjectChange<Config>, dirtyServices: Set<string>, pods: Set<string>): void {
    const id = `${key.namespace}/${key.name}`;
    switch (key.kind) {
      case 'Service':
        if (current === undefined) this.#services.delete(id);
        else this.#services.set(id, current as Config<KubernetesService>);
        dirtyServices.add(id);
        break;
      case 'Endpoints':
        this.#slices.setEndpoints(id, current as Config<Endpoints> | undefined);
        dirtyServices.add(id);
        break;
      case 'EndpointSlice':
        for (const service of this.#slices.setSlice(id, current as Config<EndpointSlice> | undefined))
          dirtyServices.add(service);
        break;
      case 'Pod':
        this.#pods.setPod(id, current as Config<KubernetesPod> | undefined);
        pods.add(id);
        break;
      case 'Node': {
        const node = this.#pods.setNode(key.name, current as Config<KubernetesNode> | undefined);
        if (!node.differs) break;
        for (const pod of node.pods) pods.add(pod);
        for (const service of this.#users.usersOf(`node ${key.name}`, 'nodes')) dirtyServices.add(service);
      }
    }
  }

  #markServicesUsing({ previous, current }: WorkloadEvent, dirtyServices: Set<string>): void {
    for (const workload of [previous, current]) {
      if (workload === undefined) continue;
      const { namespace, name, addresses } = workload;
      const names = [`pod ${namespace}/${name}`, ...addresses.map((address) => `ip ${addressIn(namespace, address)}`)];
      for (const service of this.#users.usersOf(...names)) dirtyServices.add(service);
    }
  }

  #markServicesSelecting({ previous, current }: WorkloadEvent, dirtyServices: Set<string>): void {
    const { namespace } = (current ?? previous)!;
    const index = this.#workloads.get(namespace) ?? new LabelIndex<Workload>();
    this.#workloads.set(namespace, index);
    if (previous) index.remove(workloadId(previous));
    if (current) index.put(workloadId(current), current);
    for (const workload of [previous, current]) {
      if (workload === undefined) continue;
      for (const { id } of this.#selectors.itemsSelecting(namespace, workload.labels)) dirtyServices.add(id);
    }
  }

  #rebuildService(id: string): ServiceDelta | undefined {
    const previous = this.#records.get(id) ?? emptyRecord;
    const config = this.#services.get(id);
    const record =
      config && this.#isNamespaceVisible(config.namespace) ? this.#convert(id, config, previous) : emptyRecord;
    if (record === emptyRecord) this.#records.delete(id);
    else this.#records.set(id, record);
    this.#updateLookups(id, previous, record);
    const service = record.services[0] ?? previous.services[0];
    if (service === undefined) return undefined;
    const { hostname, namespace } = service;
    this.#addresses = this.#addresses.withService(service, previous.foreignEndpoints, record.foreignEndpoints);
    if (record.services === previous.services && record.endpoints === previous.endpoints) return undefined;
    return {
      ...{ hostname, namespace, previous: previous.services, current: record.services },
      ...{ previousEndpoints: previous.endpoints, endpoints: record.endpoints },
    };
  }

  #convert(id: string, config: Config<KubernetesService>, previous: ServiceRecord): ServiceRecord {
    const usedKeys = new Set<string>();
    const { namespace, spec } = config;
    const usesNodes = nodeSelectorOf(config) !== undefined;
    if (usesNodes) usedKeys.add('nodes');
    // Reuses the converted Service and its selector, because usually only endpoints changed.
    const isUnchanged = config === previous.config && !usesNodes;
    const services = isUnchanged
      ? previous.services
      : reuseServices([convertService(config, this.#options, () => this.#pods.nodes)], previous.services);
    const service = services[0]!;
    const usesSelector = hasSelector(config);
    const isName = service.resolution === 'Alias';
    const endpointsOfSlices = sliceEndpoints(isName ? [] : this.#slices.slicesOfService(id), {
      namespace,
      hasSelector: usesSelector,
      publishNotReady: spec.spec.publishNotReadyAddresses,
      keepsDraining: config.labels[this.#options.persistentSessionLabel] !== undefined,
      podNamed: (name) => {
        usedKeys.add(`pod ${namespace}/${name}`);
        return this.#pods.workloadsByName.get(`${namespace}/${name}`);
      },
      podAt: (address) => {
        usedKeys.add(`ip ${addressIn(namespace, address)}`);
        return this.#pods.workloadAt(namespace, address);
      },
      templateAt: (address, nodeName) => {
        if (nodeName !== undefined) usedKeys.add(`node ${nodeName}`);
        return this.#templateAt(address, namespace, nodeName);
      },
    });
    const selectedWorkloads = usesSelector && !config.isWithoutEndpoints ? this.#selectedWorkloads(config) : [];
    const endpoints = reuseEndpoints([...endpointsOfSlices.endpoints, ...selectedWorkloads], previous.endpoints);
    const foreignEndpoints = usesSelector ? reuseEndpoints(selectedWorkloads, previous.foreignEndpoints) : endpoints;
    const item = { hostname: service.hostname, ports: spec.spec.ports };
    const selectingItem = isUnchanged
      ? previous.selecting
      : usesSelector
        ? { id, selector: spec.spec.selector!, item }
        : undefined;
    return {
      ...{
        config,
        services,
        endpoints,
        foreignEndpoints,
        usedKeys: usedKeys,
        pendingPods: endpointsOfSlices.pendingPods,
        bareAddresses: endpointsOfSlices.bareAddresses,
      },
      ...(selectingItem && { selecting: selectingItem }),
    };
  }

  #selectedWorkloads({ namespace, spec: { spec } }: Config<KubernetesService>): Endpoint[] {
    const selectedWorkloads = this.#workloads.get(namespace)?.selectedBy(spec.selector!) ?? [];
    return selectedWorkloads.toSorted(compareWorkloadAge).flatMap((workload) =>
      spec.ports.flatMap((port) => {
        const number = portNamed(workload, port.name) ?? targetPortOf(port, workload);
        return number === undefined ? [] : [endpointOf(workload, port.name, number)];
      }),
    );
  }

  #templateAt(address: string, namespace: string, nodeName: string | undefined): EndpointTemplate {
    return {
      ...{ address, namespace, labels: {}, serviceAccount: '', workloadName: '', weight: 0, tlsMode: 'disabled' },
      network: this.#networks.networkOf(address),
      locality: nodeLocality(this.#pods.node(nodeName)),
      clusterId: this.#options.clusterId,
      ...(nodeName !== undefined && { nodeName }),
      health: 'healthy',
    };
  }

  #updateLookups(id: string, previous: ServiceRecord, record: ServiceRecord): void {
    this.#users.setUsedKeys(id, previous.usedKeys, record.usedKeys);
    const namespace = id.slice(0, id.indexOf('/'));
    if (previous.selecting === record.selecting) return;
    if (previous.selecting) this.#selectors = this.#selectors.withoutItem(namespace, previous.selecting);
    if (record.selecting) this.#selectors = this.#selectors.withItem(namespace, record.selecting);
  }
}

function proxiesOf({ previous, current }: WorkloadEvent): readonly string[] {
  if (current === undefined) return [];
  const isUnchanged =
    previous !== undefined &&
    sameLabels(previous.labels, current.labels) &&
    previous.template.locality === current.template.locality;
  return isUnchanged ? [] : current.addresses;
}
