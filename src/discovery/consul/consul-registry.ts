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

export interface ConsulFeed {
  attach(registry: ConsulRegistry): void;
  detach(registry: ConsulRegistry): void;
  /** The list is empty if the host is complete. */
  problems(hostname: string, problems: readonly string[]): void;
}

export class ConsulRegistry extends MemoryRegistry {
  readonly #options: ConsulOptions;
  protected override readonly feed: ConsulFeed;
  /** Labels and localities of instances, by address, then host. */
  #workloads = PersistentMap.empty<PersistentMap<KnownWorkload>>();
  readonly #addresses = new Map<string, ReadonlySet<string>>();

  constructor(shard: ShardKey, options: ConsulOptions, updater: XdsUpdater, feed: ConsulFeed) {
    super(shard, updater);
    this.#options = options;
    this.feed = feed;
  }

  override get lookup(): ProxyLookup {
    const { targetsOf } = super.lookup;
    const workloads = this.#workloads;
    const workloadOf = ({ configNamespace, ipAddresses }: LookupSubject): KnownWorkload | undefined =>
      configNamespace === consulNamespace
        ? ipAddresses.map((address) => firstOf(workloads.get(address))).find((workload) => workload !== undefined)
        : undefined;
    return { targetsOf, workloadOf };
  }

  applyHosts(hosts: readonly AppliedHost[]): void {
    for (const { hostname, instances } of hosts) this.#applyHost(hostname, instances);
  }

  #applyHost(hostname: string, instances: readonly ConsulInstance[]): void {
    const name = { hostname, namespace: consulNamespace };
    this.#setWorkloads(hostname, instances);
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

  #setWorkloads(hostname: string, instances: readonly ConsulInstance[]): void {
    const instanceByAddress = new Map(
      instances.map((instance) => [instance.address || instance.node.address, instance]),
    );
    for (const address of this.#addresses.get(hostname) ?? []) {
      const remainingWorkloads = this.#workloads.get(address)?.withoutKey(hostname);
      if (instanceByAddress.has(address) || remainingWorkloads === undefined) continue;
      this.#workloads =
        remainingWorkloads.size === 0
          ? this.#workloads.withoutKey(address)
          : this.#workloads.with(address, remainingWorkloads);
    }
    if (instanceByAddress.size === 0) this.#addresses.delete(hostname);
    else this.#addresses.set(hostname, new Set(instanceByAddress.keys()));
    for (const [address, instance] of instanceByAddress) {
      const labels = labelsOf(instance);
      const workload = { labels, locality: consulLocality(instance, labels) };
      const workloads = this.#workloads.get(address) ?? PersistentMap.empty<KnownWorkload>();
      this.#workloads = this.#workloads.with(address, workloads.with(hostname, workload));
    }
  }
}

/** Several services can share an address, so the workload of the first service by name is returned. */
function firstOf(workloadsByHost: PersistentMap<KnownWorkload> | undefined): KnownWorkload | undefined {
  if (workloadsByHost === undefined) return undefined;
  let firstEntry: readonly [string, KnownWorkload] | undefined;
  for (const entry of workloadsByHost) if (firstEntry === undefined || entry[0] < firstEntry[0]) firstEntry = entry;
  return firstEntry?.[1];
}
