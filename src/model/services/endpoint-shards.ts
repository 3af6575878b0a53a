/** Endpoints of all services, each registry's part by itself (spec/discovery.md §5.8). */

import { PersistentMap } from '../collections/persistent-map.ts';
import { compareText } from '../config/config.ts';
import { endpointId, isSameId, sameEndpoint } from './same-endpoint.ts';
import type { Endpoint } from './service.ts';

/** Endpoints by host name, then by namespace. */
export type EndpointIndex = ReadonlyMap<string, ReadonlyMap<string, readonly Endpoint[]>>;

/** Whose part of a service's endpoints it is. */
export interface ShardKey {
  readonly provider: string;
  readonly cluster: string;
}

/** What an update asks for: nothing, the endpoints alone, or all that the service is part of. */
export type PushType = 'none' | 'incremental' | 'full';

export interface ServiceShards {
  /** Endpoints by `provider/cluster`, in the order in which they are listed. */
  readonly shards: ReadonlyMap<string, readonly Endpoint[]>;
  readonly serviceAccounts: ReadonlySet<string>;
}

export interface ServiceName {
  readonly hostname: string;
  readonly namespace: string;
}

interface Shard {
  readonly key: ShardKey;
  readonly endpoints: readonly Endpoint[];
}

interface Entry extends ServiceShards {
  /** Ordered by provider, then cluster. */
  readonly ordered: readonly Shard[];
  readonly joined: readonly Endpoint[];
  /** What clusters, and not assignments, say of the endpoints: equal texts for equal clusters. */
  readonly security: string;
  /** What clusters say that were sent before the last endpoint went, where there are no endpoints. */
  readonly securityBefore?: string;
}

const noShards: Entry = entryOf([]);

export interface EndpointShardsOptions {
  /** PILOT_SEND_UNHEALTHY_ENDPOINTS. */
  readonly sendUnhealthy?: boolean;
}

/** Holds the present; {@link index} is a view of one moment that later updates leave as it is. */
export class EndpointShards {
  readonly #options: EndpointShardsOptions;
  #entries = PersistentMap.empty<PersistentMap<Entry>>();
  #index = PersistentMap.empty<PersistentMap<readonly Endpoint[]>>();
  #count = 0;

  constructor(options: EndpointShardsOptions = {}) {
    this.#options = options;
  }

  /** Endpoints of all shards of a service, one after the other. Lists that did not change are the same lists. */
  get index(): EndpointIndex {
    return this.#index;
  }

  /** How many endpoints there are. */
  get count(): number {
    return this.#count;
  }

  of({ hostname, namespace }: ServiceName): ServiceShards | undefined {
    return this.#entries.get(hostname)?.get(namespace);
  }

  *services(): Iterable<ServiceName & ServiceShards> {
    for (const [hostname, byNamespace] of this.#entries) {
      for (const [namespace, { shards, serviceAccounts }] of byNamespace) {
        yield { hostname, namespace, shards, serviceAccounts };
      }
    }
  }

  /**
   * Puts the endpoints of a service in a registry in the place of its last ones.
   *
   * @param endpoints with the identity of the last ones where they are equal, so that lists may be compared fast
   */
  update(key: ShardKey, service: ServiceName, endpoints: readonly Endpoint[]): PushType {
    const entry = this.#entry(service);
    const before = entry?.shards.get(shardText(key)) ?? [];
    if (endpoints.length === 0) {
      // The key stays: a service that scales to zero and back is no new one.
      if (before.length === 0) return 'none';
      const left = withoutShard(entry!, key);
      // Where nobody is left it does not matter how they would be spoken to; whoever comes next may bring something else.
      const isLast = left.ordered.length === 0;
      this.#put(service, isLast ? { ...left, securityBefore: entry!.security } : left);
      return isLast || left.security === entry!.security ? 'incremental' : 'full';
    }
    const next = withShard(entry ?? noShards, { key, endpoints });
    const changed = entry === undefined || this.#differ(before, endpoints);
    this.#put(service, next);
    if (entry === undefined || (entry.securityBefore ?? next.security) !== next.security) return 'full';
    if (entry.security !== next.security) return 'full';
    return changed ? 'incremental' : 'none';
  }

  /** The service is gone from a registry. */
  deleteService(key: ShardKey, service: ServiceName): void {
    const entry = this.#entry(service);
    if (entry === undefined) return;
    const left = withoutShard(entry, key);
    if (left.ordered.length > 0) this.#put(service, left);
    else this.#drop(service, entry);
  }

  /** A registry is gone. Returns the services that it had a part of. */
  removeShard(key: ShardKey): readonly ServiceName[] {
    return this.pruneShard(key, () => false);
  }

  /** Removes a registry's part of all services but those to keep. Returns the services that lost it. */
  pruneShard(key: ShardKey, keep: (service: ServiceName) => boolean): readonly ServiceName[] {
    const lost: ServiceName[] = [];
    for (const { hostname, namespace, shards } of this.services()) {
      if (shards.has(shardText(key)) && !keep({ hostname, namespace })) lost.push({ hostname, namespace });
    }
    for (const service of lost) this.deleteService(key, service);
    return lost;
  }

  /** Whether anybody could notice: unhealthy endpoints that are only new are not sent. */
  #differ(before: readonly Endpoint[], after: readonly Endpoint[]): boolean {
    if (before === after) return false;
    // Mostly each is where it was.
    if (before.length === after.length && after.every((endpoint, index) => isSameId(before[index]!, endpoint))) {
      return after.some((endpoint, index) => !sameEndpoint(before[index]!, endpoint));
    }
    const old = new Map(before.map((endpoint) => [endpointId(endpoint), endpoint]));
    // Two workloads at one address cannot be told apart: whatever changes of them is told.
    if (old.size < before.length) return true;
    for (const endpoint of after) {
      const id = endpointId(endpoint);
      const previous = old.get(id);
      old.delete(id);
      if (previous === undefined ? this.#isSent(endpoint) : !sameEndpoint(previous, endpoint)) return true;
    }
    return old.size > 0;
  }

  #isSent(endpoint: Endpoint): boolean {
    return endpoint.health !== 'unhealthy' || this.#options.sendUnhealthy === true;
  }

  #entry({ hostname, namespace }: ServiceName): Entry | undefined {
    return this.#entries.get(hostname)?.get(namespace);
  }

  #put(service: ServiceName, entry: Entry): void {
    const { hostname, namespace } = service;
    this.#count += entry.joined.length - (this.#entry(service)?.joined.length ?? 0);
    const entries = this.#entries.get(hostname) ?? PersistentMap.empty<Entry>();
    this.#entries = this.#entries.with(hostname, entries.with(namespace, entry));
    const lists = this.#index.get(hostname) ?? PersistentMap.empty<readonly Endpoint[]>();
    this.#index = this.#index.with(hostname, lists.with(namespace, entry.joined));
  }

  #drop({ hostname, namespace }: ServiceName, entry: Entry): void {
    this.#count -= entry.joined.length;
    const entries = this.#entries.get(hostname)!.without(namespace);
    const lists = this.#index.get(hostname)!.without(namespace);
    this.#entries = entries.size === 0 ? this.#entries.without(hostname) : this.#entries.with(hostname, entries);
    this.#index = lists.size === 0 ? this.#index.without(hostname) : this.#index.with(hostname, lists);
  }
}

/** `Kubernetes/cluster-1`. */
function shardText({ provider, cluster }: ShardKey): string {
  return `${provider}/${cluster}`;
}

function withShard(entry: Entry, shard: Shard): Entry {
  const others = entry.ordered.filter(({ key }) => !sameKey(key, shard.key));
  return entryOf([...others, shard].sort((a, b) => compareKeys(a.key, b.key)));
}

function withoutShard(entry: Entry, key: ShardKey): Entry {
  return entryOf(entry.ordered.filter((shard) => !sameKey(shard.key, key)));
}

function entryOf(ordered: readonly Shard[]): Entry {
  const joined = ordered.length === 1 ? ordered[0]!.endpoints : ordered.flatMap(({ endpoints }) => endpoints);
  const accounts = new Set<string>();
  for (const { serviceAccount } of joined) if (serviceAccount !== '') accounts.add(serviceAccount);
  const shards = new Map(ordered.map(({ key, endpoints }) => [shardText(key), endpoints]));
  // Identities are expected of whoever answers; connections that go wherever the client wanted are secured where all take it.
  const allSecured = joined.length > 0 && joined.every(({ tlsMode }) => tlsMode === 'istio');
  const security = `${allSecured} ${[...accounts].sort().join()}`;
  return { ordered, shards, serviceAccounts: accounts, joined, security };
}

function sameKey(a: ShardKey, b: ShardKey): boolean {
  return a.provider === b.provider && a.cluster === b.cluster;
}

function compareKeys(a: ShardKey, b: ShardKey): number {
  return compareText(a.provider, b.provider) || compareText(a.cluster, b.cluster);
}
