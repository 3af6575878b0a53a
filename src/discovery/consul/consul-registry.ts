import { PersistentMap } from '../../model/collections/persistent-map.ts';
import type { ConsulInstance } from '../../model/services/consul/consul-instance.ts';
import {
  type ConsulOptions,
  consulLocality,
  consulNamespace,
  convertConsulService,
  labelsOf,
} from '../../model/services/consul/consul-service.ts';
import type { ShardKey } from '../../model/services/endpoint-shards.ts';
import type { KnownWorkload, LookupSubject, ProxyLookup } from '../../model/services/proxy-lookup.ts';
import { MemoryRegistry } from '../registry/memory-registry.ts';
import type { XdsUpdater } from '../registry/registry.ts';
import type { AppliedHost } from './catalog-store.ts';

/** Where the registry gets its content, once it runs. */
export interface ConsulFeed {
  attach(registry: ConsulRegistry): void;
  detach(registry: ConsulRegistry): void;
  /** Reports what is left out of a host, and why; empty: nothing. */
  problems(hostname: string, problems: readonly string[]): void;
}

/** Services of one datacenter of Consul. */
export class ConsulRegistry extends MemoryRegistry {
  readonly #options: ConsulOptions;
  protected override readonly feed: ConsulFeed;
  /** Labels and localities of instances by address, then by host. */
  #workloads = PersistentMap.empty<PersistentMap<KnownWorkload>>();
  readonly #addresses = new Map<string, ReadonlySet<string>>();

  constructor(shard: ShardKey, options: ConsulOptions, updater: XdsUpdater, feed: ConsulFeed) {
    super(shard, updater);
    this.#options = options;
    this.feed = feed;
  }

  /** Workloads at an address belong to the namespace of all services of Consul. */
  override get lookup(): ProxyLookup {
    const { targetsOf } = super.lookup;
    const workloads = this.#workloads;
    const workloadOf = ({ configNamespace, ipAddresses }: LookupSubject): KnownWorkload | undefined =>
      configNamespace === consulNamespace
        ? ipAddresses.map((address) => firstOf(workloads.get(address))).find((workload) => workload !== undefined)
        : undefined;
    return { targetsOf, workloadOf };
  }

  /** Hosts of Consul have other instances. */
  adopt(hosts: readonly AppliedHost[]): void {
    for (const { hostname, instances } of hosts) this.#adoptHost(hostname, instances);
  }

  #adoptHost(hostname: string, instances: readonly ConsulInstance[]): void {
    const name = { hostname, namespace: consulNamespace };
    this.#adoptWorkloads(hostname, instances);
    if (instances.length === 0) {
      this.feed.problems(hostname, []);
      this.removeService(name);
      return;
    }
    const { service, endpoints, problems } = convertConsulService(instances, this.#options);
    this.feed.problems(hostname, problems);
    if (service === undefined) this.removeService(name);
    else this.putService(service, endpoints);
  }

  #adoptWorkloads(hostname: string, instances: readonly ConsulInstance[]): void {
    const now = new Map(instances.map((instance) => [instance.address || instance.node.address, instance]));
    for (const address of this.#addresses.get(hostname) ?? []) {
      const others = this.#workloads.get(address)?.without(hostname);
      if (now.has(address) || others === undefined) continue;
      this.#workloads = others.size === 0 ? this.#workloads.without(address) : this.#workloads.with(address, others);
    }
    if (now.size === 0) this.#addresses.delete(hostname);
    else this.#addresses.set(hostname, new Set(now.keys()));
    for (const [address, instance] of now) {
      const labels = labelsOf(instance);
      const workload = { labels, locality: consulLocality(instance, labels) };
      const there = this.#workloads.get(address) ?? PersistentMap.empty<KnownWorkload>();
      this.#workloads = this.#workloads.with(address, there.with(hostname, workload));
    }
  }
}

/** Several services at one address: the first by name. */
function firstOf(byHost: PersistentMap<KnownWorkload> | undefined): KnownWorkload | undefined {
  if (byHost === undefined) return undefined;
  let first: readonly [string, KnownWorkload] | undefined;
  for (const entry of byHost) if (first === undefined || entry[0] < first[0]) first = entry;
  return first?.[1];
}
