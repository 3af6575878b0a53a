import type { ServiceName, ShardKey } from '../../model/endpoint-shards.ts';
import type { NetworkGateway } from '../../model/network-gateways.ts';
import { AddressBook, type LookedUp, type ProxyLookup } from '../../model/proxy-lookup.ts';
import { keptServices } from '../../model/registry-delta.ts';
import { keptEndpoints } from '../../model/same-endpoint.ts';
import type { Endpoint, Service } from '../../model/service.ts';
import { deliver } from './deliver.ts';
import { DiscoveryAnswers } from './discovery-answers.ts';
import type { Registry, ServiceHandler, WorkloadHandler, XdsUpdater } from './registry.ts';
import { RegistryHandlers } from './registry-handlers.ts';

interface Held extends ServiceName {
  readonly services: readonly Service[];
  readonly endpoints: readonly Endpoint[];
}

/** Services that somebody puts in by hand: a test, or nobody at all (`--registries=Memory,Mock`). */
export class MemoryRegistry extends DiscoveryAnswers implements Registry {
  readonly provider: string;
  readonly clusterId: string;
  readonly #shard: ShardKey;
  readonly #updater: XdsUpdater;
  readonly #handlers = new RegistryHandlers();
  readonly #held = new Map<string, Held>();
  #addresses = new AddressBook();

  constructor(shard: ShardKey, updater: XdsUpdater) {
    super();
    this.provider = shard.provider;
    this.clusterId = shard.cluster;
    this.#shard = shard;
    this.#updater = updater;
  }

  services(): readonly Service[] {
    return [...this.#held.values()].flatMap(({ services }) => services);
  }

  servicesOf(hostname: string, namespace: string): readonly Service[] {
    return this.#held.get(`${namespace}/${hostname}`)?.services ?? [];
  }

  /** A cluster's registry answers for its own proxies alone. */
  get lookup(): ProxyLookup {
    const [addresses, { provider, clusterId }] = [this.#addresses, this];
    const isElsewhere = (proxy: LookedUp): boolean =>
      provider === 'Kubernetes' && proxy.clusterId !== '' && proxy.clusterId !== clusterId;
    return {
      targetsOf: (proxy) => (isElsewhere(proxy) ? [] : addresses.at(proxy.ipAddresses)),
      workloadOf: () => undefined,
    };
  }

  networkGateways(): readonly NetworkGateway[] {
    return [];
  }

  /** Adds a service or puts it in the place of the one of the same host and namespace; its endpoints too, when given. */
  putService(service: Service, endpoints?: readonly Endpoint[]): void {
    this.#put({ ...this.#heldOf(service), services: [service], ...(endpoints && { endpoints }) });
  }

  /** All endpoints of a service that was put before. */
  putEndpoints(service: ServiceName, endpoints: readonly Endpoint[]): void {
    this.#put({ ...this.#heldOf(service), endpoints });
  }

  /** Its endpoints go as well. */
  removeService(service: ServiceName): void {
    this.#put({ ...this.#heldOf(service), services: [], endpoints: [] });
  }

  appendServiceHandler(handler: ServiceHandler): void {
    this.#handlers.appendServiceHandler(handler);
  }

  appendWorkloadHandler(handler: WorkloadHandler): void {
    this.#handlers.appendWorkloadHandler(handler);
  }

  run(): void {
    this.#handlers.run();
    for (const held of this.#held.values()) this.#tell(held, { ...held, services: [], endpoints: [] });
  }

  stop(): void {
    this.#handlers.stop();
  }

  hasSynced(): boolean {
    return this.#handlers.isRunning;
  }

  #heldOf({ hostname, namespace }: ServiceName): Held {
    return this.#held.get(`${namespace}/${hostname}`) ?? { hostname, namespace, services: [], endpoints: [] };
  }

  #put(wanted: Held): void {
    const before = this.#heldOf(wanted);
    const now: Held = {
      ...wanted,
      services: keptServices(wanted.services, before.services),
      endpoints: keptEndpoints(wanted.endpoints, before.endpoints),
    };
    const id = `${now.namespace}/${now.hostname}`;
    if (now.services.length === 0) this.#held.delete(id);
    else this.#held.set(id, now);
    this.#addresses = this.#addresses.with(now, before.endpoints, now.endpoints);
    if (this.#handlers.isRunning) this.#tell(now, before);
  }

  #tell({ hostname, namespace, services, endpoints }: Held, before: Held): void {
    if (services === before.services && endpoints === before.endpoints) return;
    const change = { previous: before.services, current: services, previousEndpoints: before.endpoints, endpoints };
    const delta = { services: [{ hostname, namespace, ...change }], workloads: [] };
    deliver(delta, this.#shard, this.#updater, this.#handlers);
  }
}
