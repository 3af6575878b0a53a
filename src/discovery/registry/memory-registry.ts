import type { ServiceName } from '../../model/services/endpoint-shards.ts';
import { AddressBook, type LookupSubject, type ProxyLookup } from '../../model/services/proxy-lookup.ts';
import { reuseServices } from '../../model/services/registry-delta.ts';
import { reuseEndpoints } from '../../model/services/same-endpoint.ts';
import type { Endpoint, Service } from '../../model/services/service.ts';
import { ShardRegistry } from './shard-registry.ts';

interface ServiceState extends ServiceName {
  readonly services: readonly Service[];
  readonly endpoints: readonly Endpoint[];
}

/** Services that code sets, such as tests (`--registries=Memory,Mock`). */
export class MemoryRegistry extends ShardRegistry {
  readonly #states = new Map<string, ServiceState>();
  #addresses = new AddressBook();

  services(): readonly Service[] {
    return [...this.#states.values()].flatMap(({ services }) => services);
  }

  servicesOf(hostname: string, namespace: string): readonly Service[] {
    return this.#states.get(`${namespace}/${hostname}`)?.services ?? [];
  }

  /** Lookups find only proxies of the registry's own cluster. */
  get lookup(): ProxyLookup {
    const [addresses, { provider, clusterId }] = [this.#addresses, this];
    const isInOtherCluster = (proxy: LookupSubject): boolean =>
      provider === 'Kubernetes' && proxy.clusterId !== '' && proxy.clusterId !== clusterId;
    return {
      targetsOf: (proxy) =>
        isInOtherCluster(proxy) ? [] : addresses.targetsAt(proxy.configNamespace, proxy.ipAddresses),
      workloadOf: () => undefined,
    };
  }

  /** Without `endpoints`, keeps those of the replaced service. */
  putService(service: Service, endpoints?: readonly Endpoint[]): void {
    this.#put({ ...this.#stateOf(service), services: [service], ...(endpoints && { endpoints }) });
  }

  putEndpoints(service: ServiceName, endpoints: readonly Endpoint[]): void {
    this.#put({ ...this.#stateOf(service), endpoints });
  }

  removeService(service: ServiceName): void {
    this.#put({ ...this.#stateOf(service), services: [], endpoints: [] });
  }

  protected override deliverPending(): void {
    for (const state of this.#states.values()) this.#deliverChange(state, { ...state, services: [], endpoints: [] });
  }

  #stateOf({ hostname, namespace }: ServiceName): ServiceState {
    return this.#states.get(`${namespace}/${hostname}`) ?? { hostname, namespace, services: [], endpoints: [] };
  }

  #put(next: ServiceState): void {
    const previous = this.#stateOf(next);
    const nextState: ServiceState = {
      ...next,
      services: reuseServices(next.services, previous.services),
      endpoints: reuseEndpoints(next.endpoints, previous.endpoints),
    };
    const id = `${nextState.namespace}/${nextState.hostname}`;
    if (nextState.services.length === 0) this.#states.delete(id);
    else this.#states.set(id, nextState);
    this.#addresses = this.#addresses.withService(nextState, previous.endpoints, nextState.endpoints);
    if (this.handlers.isRunning) this.#deliverChange(nextState, previous);
  }

  #deliverChange({ hostname, namespace, services, endpoints }: ServiceState, previous: ServiceState): void {
    if (services === previous.services && endpoints === previous.endpoints) return;
    const change = { previous: previous.services, current: services, previousEndpoints: previous.endpoints, endpoints };
    this.deliver({ services: [{ hostname, namespace, ...change }], workloads: [] });
  }
}
