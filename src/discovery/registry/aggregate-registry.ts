import { mergeServices } from '../../model/merge-services.ts';
import type { NetworkGateway } from '../../model/network-gateways.ts';
import { joinedLookup, type ProxyLookup } from '../../model/proxy-lookup.ts';
import type { Service } from '../../model/service.ts';
import { DiscoveryAnswers } from './discovery-answers.ts';
import type { Registry, ServiceHandler, WorkloadHandler, XdsUpdater } from './registry.ts';

/**
 * Several registries as one (spec/discovery.md §5.7): those of Kubernetes first, the own cluster's before the others',
 * then the rest in the order in which they were added.
 */
export class AggregateRegistry extends DiscoveryAnswers implements Registry {
  readonly provider = 'Aggregate';
  readonly clusterId: string;
  readonly #updater: Pick<XdsUpdater, 'removeShard'>;
  readonly #serviceHandlers: ServiceHandler[] = [];
  readonly #workloadHandlers: WorkloadHandler[] = [];
  #registries: readonly Registry[] = [];
  #state: 'built' | 'running' | 'stopped' = 'built';

  /** @param clusterId of the cluster that the control plane's configuration is in */
  constructor(clusterId: string, updater: Pick<XdsUpdater, 'removeShard'>) {
    super();
    this.clusterId = clusterId;
    this.#updater = updater;
  }

  /** In the order in which they are asked. */
  get registries(): readonly Registry[] {
    return this.#registries;
  }

  /**
   * @param registry that does not run yet: it is run at once when this one runs
   * @throws Error when there is one of the same provider and cluster
   */
  addRegistry(registry: Registry): void {
    const { provider, clusterId } = registry;
    if (this.#registries.some((other) => other.provider === provider && other.clusterId === clusterId)) {
      throw new Error(`there is a registry ${provider} of cluster ${clusterId} already`);
    }
    this.#registries = [...this.#registries, registry].sort((a, b) => this.#rank(a) - this.#rank(b));
    registry.appendServiceHandler((event) => {
      for (const handler of this.#serviceHandlers) handler(event);
    });
    registry.appendWorkloadHandler((event) => {
      for (const handler of this.#workloadHandlers) handler(event);
    });
    if (this.#state === 'running') registry.run();
  }

  /** Stops a registry and takes its endpoints out of every service; everything is pushed. */
  removeRegistry(provider: string, clusterId: string): void {
    const registry = this.#registries.find((one) => one.provider === provider && one.clusterId === clusterId);
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
    return this.services().filter((service) => service.hostname === hostname && service.namespace === namespace);
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
    return joinedLookup(this.#registries.map(({ lookup }) => lookup));
  }

  networkGateways(): readonly NetworkGateway[] {
    return this.#registries.flatMap((registry) => registry.networkGateways());
  }

  appendServiceHandler(handler: ServiceHandler): void {
    this.#refuseLate();
    this.#serviceHandlers.push(handler);
  }

  appendWorkloadHandler(handler: WorkloadHandler): void {
    this.#refuseLate();
    this.#workloadHandlers.push(handler);
  }

  run(): void {
    if (this.#state !== 'built') throw new Error(`a registry that is ${this.#state} cannot be run`);
    this.#state = 'running';
    for (const registry of this.#registries) registry.run();
  }

  stop(): void {
    this.#state = 'stopped';
    for (const registry of this.#registries) registry.stop();
  }

  hasSynced(): boolean {
    return this.#state === 'running' && this.#registries.every((registry) => registry.hasSynced());
  }

  #rank({ provider, clusterId }: Registry): number {
    if (provider !== 'Kubernetes') return 2;
    return clusterId === this.clusterId ? 0 : 1;
  }

  #refuseLate(): void {
    if (this.#state !== 'built') throw new Error('handlers must be added before the registry is run');
  }
}

function isThere(service: Service | undefined): service is Service {
  return service !== undefined;
}
