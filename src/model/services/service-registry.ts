/** Builds services, endpoints and workloads in one call, without a running registry. */

import { type Config, compareText, configKeyOf, configKeyText } from '../config/config.ts';
import type { ConfigSet } from '../config/config-set.ts';
import { isIpAddress } from '../fields/names.ts';
import type { LabelSelector } from '../kinds/label-selector.ts';
import { type EndpointIndex, EndpointShards } from './endpoint-shards.ts';
import type { KubernetesOptions } from './kubernetes/kubernetes-options.ts';
import { KubernetesServices } from './kubernetes/kubernetes-services.ts';
import { mergeServices } from './merge-services.ts';
import { gatewaysOfNetworks, NetworkGateways } from './network-gateways.ts';
import { combinedLookup, noLookup, type ProxyLookup } from './proxy-lookup.ts';
import type { ConfigObjectChange, RegistryDelta } from './registry-delta.ts';
import type { Service } from './service.ts';
import type { ServiceEntryOptions } from './service-entry-services.ts';
import { ServiceEntryServices } from './services-of-entries.ts';

export type { EndpointIndex } from './endpoint-shards.ts';

export interface ServiceRegistry {
  /** Oldest first. Remains the same list if only endpoints changed. */
  readonly services: readonly Service[];
  /** Unchanged lists keep their identity. */
  readonly endpoints: EndpointIndex;
  readonly workloads: ProxyLookup;
  readonly gateways: NetworkGateways;
}

export const emptyRegistry: ServiceRegistry = {
  services: [],
  endpoints: new Map(),
  workloads: noLookup,
  gateways: NetworkGateways.empty,
};

export interface RegistryOptions extends KubernetesOptions, ServiceEntryOptions {
  readonly discoverySelectors: readonly LabelSelector[];
  /** If true, changes of unready endpoints are visible to clients. */
  readonly sendUnhealthy: boolean;
}

/** Defaults without flags, for a control plane in namespace `istio-system`. */
export const defaultRegistryOptions: RegistryOptions = {
  trustDomain: 'cluster.local',
  domain: 'cluster.local',
  clusterId: 'Kubernetes',
  defaultServiceExportTo: ['*'],
  exportingNamespaces: ['*'],
  rootNamespace: 'istio-system',
  systemNamespace: 'istio-system',
  networks: { networks: {} },
  discoverySelectors: [],
  selectWorkloadEntries: true,
  selectPods: true,
  sendUnhealthy: false,
  persistentSessionLabel: 'istio.io/persistent-session',
};

export const serviceKinds = [
  ...(['ServiceEntry', 'WorkloadEntry'] as const),
  ...(['Service', 'Endpoints', 'EndpointSlice', 'Pod', 'Node', 'Namespace'] as const),
];

class RegistryBuilder {
  readonly #options: RegistryOptions;
  readonly #kubernetes: KubernetesServices;
  readonly #serviceEntries: ServiceEntryServices;
  readonly #shards: EndpointShards;
  #objects = new Map<string, Config>();
  #services: readonly Service[] = [];

  constructor(options: RegistryOptions) {
    this.#options = options;
    this.#kubernetes = new KubernetesServices(options);
    this.#serviceEntries = new ServiceEntryServices(options);
    this.#shards = new EndpointShards(options);
  }

  build(configs: Partial<ConfigSet>): ServiceRegistry {
    const changes = this.#changes(configs);
    // Each registry receives the workloads of the other one, but its own workloads do not depend on them.
    const entries = this.#serviceEntries.apply(changes);
    const kubernetes = this.#kubernetes.apply(changes, entries.workloads);
    const selectingPods = this.#serviceEntries.apply([], kubernetes.workloads);
    this.#storeConfigs('External', entries);
    this.#storeConfigs('External', selectingPods);
    this.#storeConfigs('Kubernetes', kubernetes);
    const [kubernetesServices, entryServices] = [this.#kubernetes, this.#serviceEntries].map((registry) => [
      ...registry.services(),
    ]);
    const services = mergeServices([
      { provider: 'Kubernetes', services: kubernetesServices! },
      { provider: 'External', services: entryServices! },
    ]).toSorted(compareServiceAge);
    const isUnchanged =
      services.length === this.#services.length && services.every((service, i) => service === this.#services[i]);
    if (!isUnchanged) this.#services = services;
    const namedGateways = gatewaysOfNetworks(this.#options.networks, (host) =>
      services.filter((s) => s.hostname === host),
    );
    const gateways = [...this.#kubernetes.networkGateways(), ...namedGateways].filter(({ address }) =>
      isIpAddress(address),
    );
    return {
      services: this.#services,
      endpoints: this.#shards.index,
      workloads: combinedLookup([this.#kubernetes.lookup, this.#serviceEntries.lookup]),
      gateways: new NetworkGateways(gateways),
    };
  }

  #changes(configs: Partial<ConfigSet>): ConfigObjectChange<Config>[] {
    const allConfigs: readonly Config[] = serviceKinds.flatMap((kind): readonly Config[] => configs[kind] ?? []);
    const currentByKey = new Map(allConfigs.map((config) => [configKeyText(config), config]));
    const removedObjects = [...this.#objects].filter(([key]) => !currentByKey.has(key)).map(([, config]) => config);
    const changedConfigs = [...currentByKey]
      .filter(([key, config]) => this.#objects.get(key) !== config)
      .map(([, config]) => config);
    this.#objects = currentByKey;
    return [
      ...removedObjects.map((config) => ({ key: configKeyOf(config), current: undefined })),
      ...changedConfigs.map((config) => ({ key: configKeyOf(config), current: config })),
    ];
  }

  #storeConfigs(provider: string, { services }: RegistryDelta): void {
    const key = { provider, cluster: this.#options.clusterId };
    for (const delta of services) {
      if (delta.current.length === 0) this.#shards.deleteService(key, delta);
      else this.#shards.update(key, delta, delta.endpoints);
    }
  }
}

const builders = new WeakMap<ServiceRegistry, RegistryBuilder>();

/**
 * @param configs objects of {@link serviceKinds}
 * @param previous result of this function with the same options
 */
export function buildServiceRegistry(
  configs: Partial<ConfigSet>,
  options: Partial<RegistryOptions> = {},
  previous?: ServiceRegistry,
): ServiceRegistry {
  const builder =
    (previous && builders.get(previous)) ?? new RegistryBuilder({ ...defaultRegistryOptions, ...options });
  const registry = builder.build(configs);
  builders.set(registry, builder);
  return registry;
}

export function compareServiceAge(a: Service, b: Service): number {
  return (
    a.creationTime - b.creationTime || compareText(a.hostname, b.hostname) || compareText(a.namespace, b.namespace)
  );
}
