import { isDeepStrictEqual } from 'node:util';
import type { PushType, ServiceName, ShardKey } from '../../model/services/endpoint-shards.ts';
import type { Endpoint, Service } from '../../model/services/service.ts';
import type { RegistryPush, ServiceDiscovery, ServiceEvent, XdsUpdater } from './registry.ts';

interface HeldUpdate extends ServiceName {
  readonly endpoints: readonly Endpoint[];
}

const idOf = ({ namespace, hostname }: ServiceName): string => `${namespace}/${hostname}`;

/** Forwards updates of a registry. If the registry replaces another one, holds updates until the new registry is complete. */
export class Handover implements XdsUpdater {
  readonly #updater: XdsUpdater;
  readonly #onForwarded: () => void;
  /** `undefined` while updates are forwarded. */
  #bufferedUpdates: Map<string, HeldUpdate> | undefined;

  /** @param isHoldingBack whether the registry replaces another one */
  constructor(updater: XdsUpdater, onForwarded: () => void, isHoldingBack: boolean) {
    this.#updater = updater;
    this.#onForwarded = onForwarded;
    this.#bufferedUpdates = isHoldingBack ? new Map() : undefined;
  }

  servicesOf(hostname: string, namespace: string): readonly Service[] {
    return this.#updater.servicesOf(hostname, namespace);
  }

  edsUpdate(shard: ShardKey, service: ServiceName, endpoints: readonly Endpoint[]): void {
    if (this.#bufferUpdate(service, endpoints)) return;
    this.#updater.edsUpdate(shard, service, endpoints);
    this.#onForwarded();
  }

  edsCacheUpdate(shard: ShardKey, service: ServiceName, endpoints: readonly Endpoint[]): PushType {
    if (this.#bufferUpdate(service, endpoints)) return 'none';
    const push = this.#updater.edsCacheUpdate(shard, service, endpoints);
    this.#onForwarded();
    return push;
  }

  svcUpdate(shard: ShardKey, service: ServiceName, event: ServiceEvent['event']): void {
    if (this.#bufferedUpdates !== undefined) {
      if (event === 'delete') this.#bufferedUpdates.delete(idOf(service));
      return;
    }
    this.#updater.svcUpdate(shard, service, event);
    this.#onForwarded();
  }

  configUpdate(push: RegistryPush): void {
    this.#forward(() => this.#updater.configUpdate(push));
  }

  proxyUpdate(clusterId: string, address: string): void {
    this.#forward(() => this.#updater.proxyUpdate(clusterId, address));
  }

  removeShard(shard: ShardKey): void {
    this.#forward(() => this.#updater.removeShard(shard));
  }

  pruneShard(shard: ShardKey, isServiceKept: (service: ServiceName) => boolean): void {
    this.#forward(() => this.#updater.pruneShard(shard, isServiceKept));
  }

  /**
   * Forwards the differences when the complete registry has replaced the previous one.
   *
   * @param previous services of the replaced registry
   */
  release(shard: ShardKey, previous: readonly Service[], currentRegistry: Pick<ServiceDiscovery, 'services'>): void {
    const bufferedUpdates = this.#bufferedUpdates;
    if (bufferedUpdates === undefined) return;
    this.#bufferedUpdates = undefined;
    const previousById = Map.groupBy(previous, idOf);
    const current = Map.groupBy(currentRegistry.services(), idOf);
    for (const [id, services] of current) {
      const { hostname, namespace } = services[0]!;
      const { endpoints = [] } = bufferedUpdates.get(id) ?? {};
      if (isDeepStrictEqual(services, previousById.get(id)))
        this.#updater.edsUpdate(shard, { hostname, namespace }, endpoints);
      else {
        this.#updater.edsCacheUpdate(shard, { hostname, namespace }, endpoints);
        this.#updater.svcUpdate(shard, { hostname, namespace }, previousById.has(id) ? 'update' : 'add');
      }
    }
    for (const [id, [service]] of previousById)
      if (!current.has(id)) this.#updater.svcUpdate(shard, service!, 'delete');
    this.#updater.pruneShard(shard, (service) => current.has(idOf(service)));
    this.#onForwarded();
  }

  #bufferUpdate({ hostname, namespace }: ServiceName, endpoints: readonly Endpoint[]): boolean {
    this.#bufferedUpdates?.set(idOf({ hostname, namespace }), { hostname, namespace, endpoints });
    return this.#bufferedUpdates !== undefined;
  }

  /** Until the registry is active, updates that belong to no service are dropped, because they have no effect. */
  #forward(forward: () => void): void {
    if (this.#bufferedUpdates !== undefined) return;
    forward();
    this.#onForwarded();
  }
}
