import { mergeServices } from '../../model/services/merge-services.ts';
import type { NetworkGateway } from '../../model/services/network-gateways.ts';
import { combinedLookup, type ProxyLookup } from '../../model/services/proxy-lookup.ts';
import type { Service } from '../../model/services/service.ts';
import { AnyRegistry } from './any-registry.ts';
import type { Registry, RegistryEvents, XdsUpdater } from './registry.ts';

/**
 * Several registries as one (spec/discovery.md §5.7): those of Kubernetes first, the own cluster's before the others',
 * then the rest in the order in which they were added.
 */
export class AggregateRegistry extends AnyRegistry {
  readonly provider = 'Aggregate';
  readonly clusterId: string;
  readonly #updater: Pick<XdsUpdater, 'removeShard'>;
  #registries: readonly Registry[] = [];

  /** @param clusterId of the cluster that the control plane's configuration is in */
  constructor(clusterId: string, updater: Pick<XdsUpdater, 'removeShard'>) {
    super();
    this.clusterId = clusterId;
    this.#updater = updater;
  }

  /** Registries in the order in which they are asked. */
  get registries(): readonly Registry[] {
    return this.#registries;
  }

  /**
   * @param registry that does not run yet: it is run at once when this one runs
   * @param told what becomes of it
   * @throws Error when there is one of the same provider and cluster
   */
  addRegistry(registry: Registry, events?: RegistryEvents): void {
    const { provider, clusterId } = registry;
    if (this.registryOf(provider, clusterId) !== undefined) {
      throw new Error(`registry ${provider} of cluster ${clusterId} already exists`);
    }
    this.#registries = [...this.#registries, registry].sort((a, b) => this.#rank(a) - this.#rank(b));
    registry.appendServiceHandler((event) => this.handlers.tellService(event));
    registry.appendWorkloadHandler((event) => this.handlers.tellWorkload(event));
    if (this.handlers.isRunning) registry.run(events);
  }

  /** The registry of a provider and cluster. */
  registryOf(provider: string, clusterId: string): Registry | undefined {
    return this.#registries.find((one) => one.provider === provider && one.clusterId === clusterId);
  }

  /** Puts a registry that runs in the place of the one of the same provider and cluster, which is stopped. */
  replaceRegistry(registry: Registry): void {
    const before = this.registryOf(registry.provider, registry.clusterId);
    before?.stop();
    this.#registries = this.#registries.map((one) => (one === before ? registry : one));
  }

  /** Stops a registry and takes its endpoints out of every service; everything is pushed. */
  removeRegistry(provider: string, clusterId: string): void {
    const registry = this.registryOf(provider, clusterId);
    if (registry === undefined) return;
    registry.stop();
    this.#registries = this.#registries.filter((one) => one !== registry);
    this.#updater.removeShard({ provider, cluster: clusterId });
  }

  services(): readonly Service[] {
    return mergeServices(
      this.#registries.map((registry) => ({ provider: registry.provider, services: registry.services() })),
    );
  }

  servicesOf(hostname: string, namespace: string): readonly Service[] {
    return mergeServices(
      this.#registries.map((registry) => ({
        provider: registry.provider,
        services: registry.servicesOf(hostname, namespace),
      })),
    );
  }

  /** The first registry's that has it; one of Kubernetes' together with the other clusters'. */
  override getService(hostname: string): Service | undefined {
    const found = this.#registries.find((registry) => registry.getService(hostname) !== undefined);
    if (found?.provider !== 'Kubernetes') return found?.getService(hostname);
    const clusters = this.#registries.filter(({ provider }) => provider === 'Kubernetes');
    return mergeServices(
      clusters.map((registry) => ({
        provider: 'Kubernetes',
        services: [registry.getService(hostname)].filter(isThere),
      })),
    )[0];
  }

  /** Each cluster's registry knows by itself which proxies are not of its cluster. */
  get lookup(): ProxyLookup {
    return combinedLookup(this.#registries.map(({ lookup }) => lookup));
  }

  networkGateways(): readonly NetworkGateway[] {
    return this.#registries.flatMap((registry) => registry.networkGateways());
  }

  override run(): void {
    super.run();
    for (const registry of this.#registries) registry.run();
  }

  override stop(): void {
    super.stop();
    for (const registry of this.#registries) registry.stop();
  }

  override hasSynced(): boolean {
    return super.hasSynced() && this.#registries.every((registry) => registry.hasSynced());
  }

  #rank({ provider, clusterId }: Registry): number {
    if (provider !== 'Kubernetes') return 2;
    return clusterId === this.clusterId ? 0 : 1;
  }
}

function isThere(service: Service | undefined): service is Service {
  return service !== undefined;
}
