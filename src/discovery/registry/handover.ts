/** What stands between a registry that came while the program runs and what all registries hand over to. */
import { isDeepStrictEqual } from 'node:util';
import type { PushType, ServiceName, ShardKey } from '../../model/services/endpoint-shards.ts';
import type { Endpoint, Service } from '../../model/services/service.ts';
import type { RegistryPush, ServiceDiscovery, ServiceEvent, XdsUpdater } from './registry.ts';

interface Handed extends ServiceName {
  readonly endpoints: readonly Endpoint[];
}

const idOf = ({ namespace, hostname }: ServiceName): string => `${namespace}/${hostname}`;

/**
 * Passes on what one registry hands over. Of a registry that takes the place of another nothing is passed on until it has
 * handed over all that it has: half a list would take from proxies what the other half still says.
 */
export class Handover implements XdsUpdater {
  readonly #to: XdsUpdater;
  readonly #moved: () => void;
  /** By service; undefined: it is passed on. */
  #held: Map<string, Handed> | undefined;

  /**
   * @param moved called after each change that was passed on
   * @param isHeld it takes the place of another
   */
  constructor(to: XdsUpdater, moved: () => void, isHeld: boolean) {
    this.#to = to;
    this.#moved = moved;
    this.#held = isHeld ? new Map() : undefined;
  }

  servicesOf(hostname: string, namespace: string): readonly Service[] {
    return this.#to.servicesOf(hostname, namespace);
  }

  edsUpdate(shard: ShardKey, service: ServiceName, endpoints: readonly Endpoint[]): void {
    if (this.#hold(service, endpoints)) return;
    this.#to.edsUpdate(shard, service, endpoints);
    this.#moved();
  }

  edsCacheUpdate(shard: ShardKey, service: ServiceName, endpoints: readonly Endpoint[]): PushType {
    if (this.#hold(service, endpoints)) return 'none';
    const push = this.#to.edsCacheUpdate(shard, service, endpoints);
    this.#moved();
    return push;
  }

  svcUpdate(shard: ShardKey, service: ServiceName, event: ServiceEvent['event']): void {
    if (this.#held !== undefined) {
      if (event === 'delete') this.#held.delete(idOf(service));
      return;
    }
    this.#to.svcUpdate(shard, service, event);
    this.#moved();
  }

  configUpdate(push: RegistryPush): void {
    this.#pass(() => this.#to.configUpdate(push));
  }

  proxyUpdate(clusterId: string, address: string): void {
    this.#pass(() => this.#to.proxyUpdate(clusterId, address));
  }

  removeShard(shard: ShardKey): void {
    this.#pass(() => this.#to.removeShard(shard));
  }

  pruneShard(shard: ShardKey, keep: (service: ServiceName) => boolean): void {
    this.#pass(() => this.#to.pruneShard(shard, keep));
  }

  /**
   * The registry is complete and in the other's place: what differs between the two is handed over.
   *
   * @param before of the other
   */
  release(shard: ShardKey, before: readonly Service[], now: Pick<ServiceDiscovery, 'services'>): void {
    const held = this.#held;
    if (held === undefined) return;
    this.#held = undefined;
    const old = Map.groupBy(before, idOf);
    const current = Map.groupBy(now.services(), idOf);
    for (const [id, services] of current) {
      const { hostname, namespace } = services[0]!;
      const { endpoints = [] } = held.get(id) ?? {};
      if (isDeepStrictEqual(services, old.get(id))) this.#to.edsUpdate(shard, { hostname, namespace }, endpoints);
      else {
        this.#to.edsCacheUpdate(shard, { hostname, namespace }, endpoints);
        this.#to.svcUpdate(shard, { hostname, namespace }, old.has(id) ? 'update' : 'add');
      }
    }
    for (const [id, [service]] of old) if (!current.has(id)) this.#to.svcUpdate(shard, service!, 'delete');
    this.#to.pruneShard(shard, (service) => current.has(idOf(service)));
    this.#moved();
  }

  #hold({ hostname, namespace }: ServiceName, endpoints: readonly Endpoint[]): boolean {
    this.#held?.set(idOf({ hostname, namespace }), { hostname, namespace, endpoints });
    return this.#held !== undefined;
  }

  /** What concerns no service is nothing while the registry is not in its place. */
  #pass(deed: () => void): void {
    if (this.#held !== undefined) return;
    deed();
    this.#moved();
  }
}
