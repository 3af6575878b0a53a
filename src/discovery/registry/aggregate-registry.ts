import { mergeServices } from '../../model/services/merge-services.ts';
import type { NetworkGateway } from '../../model/services/network-gateways.ts';
import { combinedLookup, type ProxyLookup } from '../../model/services/proxy-lookup.ts';
import type { Service } from '../../model/services/service.ts';
import { AnyRegistry } from './any-registry.ts';
import type { Registry, RegistryEvents, XdsUpdater } from './registry.ts';

/** Kubernetes registries come first, beginning with that of the control plane's cluster, then all others in the order of addition. */
export class AggregateRegistry extends AnyRegistry {
  readonly provider = 'Aggregate';
  readonly clusterId: string;
  readonly #updater: Pick<XdsUpdater, 'removeShard'>;
  #registries: readonly Registry[] = [];

  /** @param clusterId cluster of the control plane's configuration */
  constructor(clusterId: string, updater: Pick<XdsUpdater, 'removeShard'>) {
    super();
    this.clusterId = clusterId;
    this.#updater = updater;
  }

  get registries(): readonly Registry[] {
    return this.#registries;
  }

  /**
   * @param registry must not run yet; starts immediately if this registry runs
   * @throws Error if a registry of the same provider and cluster exists
   */
  addRegistry(registry: Registry, events?: RegistryEvents): void {
    const { provider, clusterId } = registry;
    if (this.registryOf(provider, clusterId) !== undefined) {
      throw new Error(`registry ${provider} of cluster ${clusterId} already exists`);
    }
    this.#registries = [...this.#registries, registry].sort((a, b) => this.#rank(a) - this.#rank(b));
    registry.appendServiceHandler((event) => this.handlers.notifyService(event));
    registry.appendWorkloadHandler((event) => this.handlers.notifyWorkload(event));
    if (this.handlers.isRunning) registry.run(events);
  }

  registryOf(provider: string, clusterId: string): Registry | undefined {
    return this.#registries.find(
      (currentRegistry) => currentRegistry.provider === provider && currentRegistry.clusterId === clusterId,
    );
  }

  /** @param registry already running */
  replaceRegistry(registry: Registry): void {
    const previous = this.registryOf(registry.provider, registry.clusterId);
    previous?.stop();
    this.#registries = this.#registries.map((currentRegistry) =>
      currentRegistry === previous ? registry : currentRegistry,
    );
  }

  /** Causes a full push. */
  removeRegistry(provider: string, clusterId: string): void {
    const registry = this.registryOf(provider, clusterId);
    if (registry === undefined) return;
    registry.stop();
    this.#registries = this.#registries.filter((currentRegistry) => currentRegistry !== registry);
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

  /** Kubernetes services are merged over all clusters. */
  override getService(hostname: string): Service | undefined {
    const owningRegistry = this.#registries.find((registry) => registry.getService(hostname) !== undefined);
    if (owningRegistry?.provider !== 'Kubernetes') return owningRegistry?.getService(hostname);
    const clusters = this.#registries.filter(({ provider }) => provider === 'Kubernetes');
    return mergeServices(
      clusters.map((registry) => ({
        provider: 'Kubernetes',
        services: [registry.getService(hostname)].filter(isDefinedService),
      })),
    )[0];
  }

  /** Registries ignore proxies of other clusters. */
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

function isDefinedService(service: Service | undefined): service is Service {
  return service !== undefined;
}
