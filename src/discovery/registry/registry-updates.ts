import { configKeyText } from '../../model/config/config.ts';
import type { EndpointShards, PushType, ServiceName, ShardKey } from '../../model/services/endpoint-shards.ts';
import { type Endpoint, endpointsKey, proxyKey, type Service, serviceKey } from '../../model/services/service.ts';
import type { RegistryPush, ServiceDiscovery, ServiceEvent, XdsUpdater } from './registry.ts';

/** Keys are `KIND/NAMESPACE/NAME`. */
export interface PendingPush {
  readonly forced: boolean;
  readonly services: readonly string[];
  readonly endpoints: readonly string[];
  /** Addresses of proxies whose workloads changed. */
  readonly proxies: readonly string[];
  readonly reasons: ReadonlyMap<RegistryPush['reason'], number>;
}

export class RegistryUpdates implements XdsUpdater {
  readonly #shards: EndpointShards;
  readonly #registries: () => Pick<ServiceDiscovery, 'servicesOf'>;
  readonly #services = new Set<string>();
  readonly #endpoints = new Set<string>();
  readonly #proxies = new Set<string>();
  readonly #reasons = new Map<RegistryPush['reason'], number>();
  #isForced = false;
  #changedServices = new Map<string, ServiceName>();
  #allServicesChanged = false;

  /** @param registries the merged registries that use this updater. Called for each change. */
  constructor(shards: EndpointShards, registries: () => Pick<ServiceDiscovery, 'servicesOf'>) {
    this.#shards = shards;
    this.#registries = registries;
  }

  servicesOf(hostname: string, namespace: string): readonly Service[] {
    return this.#registries().servicesOf(hostname, namespace);
  }

  edsUpdate(shard: ShardKey, service: ServiceName, endpoints: readonly Endpoint[]): void {
    const push = this.#shards.update(shard, service, endpoints);
    if (push === 'full') this.configUpdate({ configs: [serviceKey(service)], reason: 'endpoint' });
    else if (push === 'incremental') this.configUpdate({ configs: [endpointsKey(service)], reason: 'endpoint' });
  }

  edsCacheUpdate(shard: ShardKey, service: ServiceName, endpoints: readonly Endpoint[]): PushType {
    return this.#shards.update(shard, service, endpoints);
  }

  svcUpdate(shard: ShardKey, service: ServiceName, event: ServiceEvent['event']): void {
    if (event === 'delete') this.#shards.deleteService(shard, service);
    const { hostname, namespace } = service;
    this.#changedServices.set(`${namespace}/${hostname}`, { hostname, namespace });
    this.configUpdate({ configs: [serviceKey(service)], reason: 'service' });
  }

  configUpdate({ configs, forced = false, reason }: RegistryPush): void {
    this.#isForced ||= forced;
    this.#reasons.set(reason, (this.#reasons.get(reason) ?? 0) + 1);
    for (const key of configs) (key.kind === 'Endpoints' ? this.#endpoints : this.#services).add(configKeyText(key));
  }

  proxyUpdate(clusterId: string, address: string): void {
    this.#proxies.add(configKeyText(proxyKey(clusterId, address)));
    this.#reasons.set('proxy', (this.#reasons.get('proxy') ?? 0) + 1);
  }

  removeShard(shard: ShardKey): void {
    this.#shards.removeShard(shard);
    this.#allServicesChanged = true;
    this.configUpdate({ configs: [], forced: true, reason: 'cluster' });
  }

  pruneShard(shard: ShardKey, isServiceKept: (service: ServiceName) => boolean): void {
    this.#shards.pruneShard(shard, isServiceKept);
  }

  get haveServicesChanged(): boolean {
    return this.#allServicesChanged || this.#changedServices.size > 0;
  }

  /** `all` if the changed services are unknown. */
  takeServicesChanged(): readonly ServiceName[] | 'all' {
    const changedServices = this.#allServicesChanged ? 'all' : [...this.#changedServices.values()];
    this.#allServicesChanged = false;
    this.#changedServices = new Map();
    return changedServices;
  }

  get pendingKeys(): readonly string[] {
    return [...this.#services, ...this.#endpoints];
  }

  takePendingPush(): PendingPush {
    const pending = {
      forced: this.#isForced,
      services: [...this.#services],
      endpoints: [...this.#endpoints].filter((key) => !this.#services.has(key.replace('Endpoints/', 'ServiceEntry/'))),
      proxies: [...this.#proxies],
      reasons: new Map(this.#reasons),
    };
    this.#isForced = false;
    for (const pendingCollection of [this.#services, this.#endpoints, this.#proxies, this.#reasons])
      pendingCollection.clear();
    return pending;
  }
}
