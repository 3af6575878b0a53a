import type { ServiceName } from '../../model/services/endpoint-shards.ts';
import { AddressBook, type LookupSubject, type ProxyLookup } from '../../model/services/proxy-lookup.ts';
import { keptServices } from '../../model/services/registry-delta.ts';
import { keptEndpoints } from '../../model/services/same-endpoint.ts';
import type { Endpoint, Service } from '../../model/services/service.ts';
import { ShardRegistry } from './shard-registry.ts';

interface Held extends ServiceName {
  readonly services: readonly Service[];
  readonly endpoints: readonly Endpoint[];
}

/** Services that somebody puts in by hand: a test, or nobody at all (`--registries=Memory,Mock`). */
export class MemoryRegistry extends ShardRegistry {
  readonly #held = new Map<string, Held>();
  #addresses = new AddressBook();

  services(): readonly Service[] {
    return [...this.#held.values()].flatMap(({ services }) => services);
  }

  servicesOf(hostname: string, namespace: string): readonly Service[] {
    return this.#held.get(`${namespace}/${hostname}`)?.services ?? [];
  }

  /** A cluster's registry answers for its own proxies alone. */
  get lookup(): ProxyLookup {
    const [addresses, { provider, clusterId }] = [this.#addresses, this];
    const isElsewhere = (proxy: LookupSubject): boolean =>
      provider === 'Kubernetes' && proxy.clusterId !== '' && proxy.clusterId !== clusterId;
    return {
      targetsOf: (proxy) => (isElsewhere(proxy) ? [] : addresses.at(proxy.configNamespace, proxy.ipAddresses)),
      workloadOf: () => undefined,
    };
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

  protected override handOver(): void {
    for (const held of this.#held.values()) this.#tell(held, { ...held, services: [], endpoints: [] });
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
    if (this.handlers.isRunning) this.#tell(now, before);
  }

  #tell({ hostname, namespace, services, endpoints }: Held, before: Held): void {
    if (services === before.services && endpoints === before.endpoints) return;
    const change = { previous: before.services, current: services, previousEndpoints: before.endpoints, endpoints };
    this.deliver({ services: [{ hostname, namespace, ...change }], workloads: [] });
  }
}
