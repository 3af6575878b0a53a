/** Endpoints of all services, in one shard per registry. */

import { PersistentMap } from '../collections/persistent-map.ts';
import { compareText } from '../config/config.ts';
import { areIdsEqual, endpointId, sameEndpoint } from './same-endpoint.ts';
import type { Endpoint } from './service.ts';

export type EndpointIndex = ReadonlyMap<string, ReadonlyMap<string, readonly Endpoint[]>>;

export interface ShardKey {
  readonly provider: string;
  readonly cluster: string;
}

/** `full` is a push of everything that depends on the service. */
export type PushType = 'none' | 'incremental' | 'full';

export interface ServiceShards {
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

interface ShardEntry extends ServiceShards {
  /** Sorted by provider, then by cluster. */
  readonly orderedShards: readonly Shard[];
  readonly joinedEndpoints: readonly Endpoint[];
  /** Text of the endpoint properties on which clusters depend. */
  readonly security: string;
  /** {@link security} before the last endpoint was removed; set while there are no endpoints. */
  readonly previousSecurity?: string;
}

const noShards: ShardEntry = entryOf([]);

export interface EndpointShardsOptions {
  readonly sendUnhealthy?: boolean;
}

/** Mutable; {@link index} is an immutable snapshot. */
export class EndpointShards {
  readonly #options: EndpointShardsOptions;
  #entries = PersistentMap.empty<PersistentMap<ShardEntry>>();
  #index = PersistentMap.empty<PersistentMap<readonly Endpoint[]>>();
  #count = 0;

  constructor(options: EndpointShardsOptions = {}) {
    this.#options = options;
  }

  get index(): EndpointIndex {
    return this.#index;
  }

  get count(): number {
    return this.#count;
  }

  shardsOf({ hostname, namespace }: ServiceName): ServiceShards | undefined {
    return this.#entries.get(hostname)?.get(namespace);
  }

  *services(): Iterable<ServiceName & ServiceShards> {
    for (const [hostname, entriesByNamespace] of this.#entries) {
      for (const [namespace, { shards, serviceAccounts }] of entriesByNamespace) {
        yield { hostname, namespace, shards, serviceAccounts };
      }
    }
  }

  /** @param endpoints equal endpoints keep their previous identity, which makes comparison fast */
  update(key: ShardKey, service: ServiceName, endpoints: readonly Endpoint[]): PushType {
    const entry = this.#entry(service);
    const previous = entry?.shards.get(shardText(key)) ?? [];
    if (endpoints.length === 0) {
      // Keeps the entry without endpoints, because a service that scales to zero and back is not new.
      if (previous.length === 0) return 'none';
      const remainingEntry = omitShard(entry!, key);
      // Without endpoints, the security mode does not matter. It is compared when the next endpoint is added.
      const isLastShard = remainingEntry.orderedShards.length === 0;
      this.#put(service, isLastShard ? { ...remainingEntry, previousSecurity: entry!.security } : remainingEntry);
      return isLastShard || remainingEntry.security === entry!.security ? 'incremental' : 'full';
    }
    const next = withShard(entry ?? noShards, { key, endpoints });
    const hasChanged = entry === undefined || this.#areDifferent(previous, endpoints);
    this.#put(service, next);
    if (entry === undefined || (entry.previousSecurity ?? next.security) !== next.security) return 'full';
    if (entry.security !== next.security) return 'full';
    return hasChanged ? 'incremental' : 'none';
  }

  deleteService(key: ShardKey, service: ServiceName): void {
    const entry = this.#entry(service);
    if (entry === undefined) return;
    const remainingEntry = omitShard(entry, key);
    if (remainingEntry.orderedShards.length > 0) this.#put(service, remainingEntry);
    else this.#removeEntry(service, entry);
  }

  removeShard(key: ShardKey): readonly ServiceName[] {
    return this.pruneShard(key, () => false);
  }

  /** Removes a registry's shard from all services that `shouldKeep` rejects. Returns these services. */
  pruneShard(key: ShardKey, shouldKeep: (service: ServiceName) => boolean): readonly ServiceName[] {
    const lostServices: ServiceName[] = [];
    for (const { hostname, namespace, shards } of this.services()) {
      if (shards.has(shardText(key)) && !shouldKeep({ hostname, namespace }))
        lostServices.push({ hostname, namespace });
    }
    for (const service of lostServices) this.deleteService(key, service);
    return lostServices;
  }

  /** Whether clients can see a change. They do not receive new unhealthy endpoints. */
  #areDifferent(previous: readonly Endpoint[], nextEndpoints: readonly Endpoint[]): boolean {
    if (previous === nextEndpoints) return false;
    // Fast path, because usually every endpoint is at the same index.
    if (
      previous.length === nextEndpoints.length &&
      nextEndpoints.every((endpoint, index) => areIdsEqual(previous[index]!, endpoint))
    ) {
      return nextEndpoints.some((endpoint, index) => !sameEndpoint(previous[index]!, endpoint));
    }
    const previousById = new Map(previous.map((endpoint) => [endpointId(endpoint), endpoint]));
    // Any change counts, because endpoints with the same ID cannot be matched.
    if (previousById.size < previous.length) return true;
    for (const endpoint of nextEndpoints) {
      const id = endpointId(endpoint);
      const previousEndpoint = previousById.get(id);
      previousById.delete(id);
      if (
        previousEndpoint === undefined ? this.#isVisibleToProxies(endpoint) : !sameEndpoint(previousEndpoint, endpoint)
      )
        return true;
    }
    return previousById.size > 0;
  }

  #isVisibleToProxies(endpoint: Endpoint): boolean {
    return endpoint.health !== 'unhealthy' || this.#options.sendUnhealthy === true;
  }

  #entry({ hostname, namespace }: ServiceName): ShardEntry | undefined {
    return this.#entries.get(hostname)?.get(namespace);
  }

  #put(service: ServiceName, entry: ShardEntry): void {
    const { hostname, namespace } = service;
    this.#count += entry.joinedEndpoints.length - (this.#entry(service)?.joinedEndpoints.length ?? 0);
    const entries = this.#entries.get(hostname) ?? PersistentMap.empty<ShardEntry>();
    this.#entries = this.#entries.with(hostname, entries.with(namespace, entry));
    const lists = this.#index.get(hostname) ?? PersistentMap.empty<readonly Endpoint[]>();
    this.#index = this.#index.with(hostname, lists.with(namespace, entry.joinedEndpoints));
  }

  #removeEntry({ hostname, namespace }: ServiceName, entry: ShardEntry): void {
    this.#count -= entry.joinedEndpoints.length;
    const entries = this.#entries.get(hostname)!.withoutKey(namespace);
    const lists = this.#index.get(hostname)!.withoutKey(namespace);
    this.#entries = entries.size === 0 ? this.#entries.withoutKey(hostname) : this.#entries.with(hostname, entries);
    this.#index = lists.size === 0 ? this.#index.withoutKey(hostname) : this.#index.with(hostname, lists);
  }
}

function shardText({ provider, cluster }: ShardKey): string {
  return `${provider}/${cluster}`;
}

function withShard(entry: ShardEntry, shard: Shard): ShardEntry {
  const otherShards = entry.orderedShards.filter(({ key }) => !sameKey(key, shard.key));
  return entryOf([...otherShards, shard].sort((a, b) => compareKeys(a.key, b.key)));
}

function omitShard(entry: ShardEntry, key: ShardKey): ShardEntry {
  return entryOf(entry.orderedShards.filter((shard) => !sameKey(shard.key, key)));
}

function entryOf(orderedShards: readonly Shard[]): ShardEntry {
  const joinedEndpoints =
    orderedShards.length === 1 ? orderedShards[0]!.endpoints : orderedShards.flatMap(({ endpoints }) => endpoints);
  const accounts = new Set<string>();
  for (const { serviceAccount } of joinedEndpoints) if (serviceAccount !== '') accounts.add(serviceAccount);
  const shards = new Map(orderedShards.map(({ key, endpoints }) => [shardText(key), endpoints]));
  // Clusters verify the identities of all endpoints. Connections to original destinations use mTLS only if all endpoints accept it.
  const allSecured = joinedEndpoints.length > 0 && joinedEndpoints.every(({ tlsMode }) => tlsMode === 'istio');
  const security = `${allSecured} ${[...accounts].sort().join()}`;
  return { orderedShards, shards, serviceAccounts: accounts, joinedEndpoints, security };
}

function sameKey(a: ShardKey, b: ShardKey): boolean {
  return a.provider === b.provider && a.cluster === b.cluster;
}

function compareKeys(a: ShardKey, b: ShardKey): number {
  return compareText(a.provider, b.provider) || compareText(a.cluster, b.cluster);
}
