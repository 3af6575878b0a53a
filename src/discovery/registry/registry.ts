/**
 * Port of a source of services (spec/discovery.md §5.1): objects of a directory or cluster, or Consul. A registry can be queried, reports changes,
 * and delivers its endpoints as its shard.
 */
import type { ConfigKey } from '../../model/config/config.ts';
import type { PushType, ServiceName, ShardKey } from '../../model/services/endpoint-shards.ts';
import type { NetworkGateway } from '../../model/services/network-gateways.ts';
import type { LookupSubject, ProxyLookup } from '../../model/services/proxy-lookup.ts';
import type { Endpoint, Service, ServiceTarget } from '../../model/services/service.ts';
import type { WorkloadEvent } from '../../model/services/workload.ts';

/** `Kubernetes`, `External` (ServiceEntries), `Mock`, `Memory` or another registry. */
export type ProviderId = string;

export interface ServiceDiscovery {
  /** With the cluster ID it identifies the registry and its shard. */
  readonly provider: ProviderId;
  readonly clusterId: string;
  /** Unique by namespace, host and address, in no particular order. */
  services(): readonly Service[];
  /** The oldest service of the host in any namespace. */
  getService(hostname: string): Service | undefined;
  servicesOf(hostname: string, namespace: string): readonly Service[];
  /** Service ports that the proxy's workload serves. */
  getProxyServiceTargets(proxy: LookupSubject): readonly ServiceTarget[];
  /** Labels of the proxy's workload, or `undefined` if unknown. */
  getProxyWorkloadLabels(proxy: LookupSubject): Readonly<Record<string, string>> | undefined;
  /** `region/zone/subzone`, or empty if unknown. */
  getProxyLocality(proxy: LookupSubject): string;
  networkGateways(): readonly NetworkGateway[];
  /** Immutable lookup of proxies at this time. */
  readonly lookup: ProxyLookup;
}

/** Change of the services of one host in one namespace. */
export interface ServiceEvent extends ServiceName {
  readonly event: 'add' | 'update' | 'delete';
  /** Empty for a new host. */
  readonly previous: readonly Service[];
  /** Empty for a removed host. */
  readonly current: readonly Service[];
}

export type ServiceHandler = (event: ServiceEvent) => void;
export type WorkloadHandler = (event: WorkloadEvent) => void;

/**
 * Handlers are added before `run` and called in the order of addition. When one is called, the registry is at least as new as the event. Content that
 * exists at `run` is reported as `add`.
 */
export interface Controller {
  /** @throws Error once the registry runs */
  appendServiceHandler(handler: ServiceHandler): void;
  /** @throws Error once the registry runs */
  appendWorkloadHandler(handler: WorkloadHandler): void;
  /** @param events listener for the state of the registry; not called after `stop` */
  run(events?: RegistryEvents): void;
  stop(): void;
  /** Reports whether all initial content was delivered. */
  hasSynced(): boolean;
}

/** State changes of a registry. Changes of its content need no event, because it delivers them to its updater. */
export interface RegistryEvents {
  /** All initial content was delivered; `hasSynced()` is true. */
  synced(): void;
  /** The registry failed. It is stopped and created again after a delay; the content it delivered still applies. */
  failed(error: unknown): void;
}

export type Registry = ServiceDiscovery & Controller;

/** A registry that can be created on demand. */
export interface RegistryOffer {
  readonly provider: ProviderId;
  readonly clusterId: string;
  /** A new revision replaces the running registry, for example after new credentials. Absent: never replaced. */
  readonly revision?: string;
  /** Creates the registry for a run. An error it throws is a failure of the registry and is retried. */
  create(updates: XdsUpdater): Registry;
}

/**
 * Reports the available registries at once and whenever they change. A registry that is no longer reported is removed with its endpoints. @returns a
 * function that ends the reports
 */
export type RegistryOffers = (offered: (offers: readonly RegistryOffer[]) => void) => () => void;

/** Merges several lists of registries. Nothing is reported before all of them are known, so that the start does not continue without some. */
export function joinOffers(...lists: readonly RegistryOffers[]): RegistryOffers {
  return (offered) => {
    const known: (readonly RegistryOffer[] | undefined)[] = lists.map(() => undefined);
    const stops = lists.map((list, index) =>
      list((offers) => {
        known[index] = offers;
        if (known.every((one) => one !== undefined)) offered(known.flat());
      }),
    );
    return () => {
      for (const stop of stops) stop();
    };
  };
}

export interface RegistryPush {
  readonly configs: readonly ConfigKey[];
  readonly forced?: boolean;
  readonly reason: 'service' | 'endpoint' | 'headlessendpoint' | 'proxy' | 'cluster' | 'networks';
}

/** Updater through which registries deliver changes: endpoints to the index of shards, and keys that a push must name. */
export interface XdsUpdater {
  /**
   * Services of all registries for a host in one namespace. Registries share its endpoints: a change in one's shard may change clusters and listeners
   * of another's service.
   */
  servicesOf(hostname: string, namespace: string): readonly Service[];
  /** Sets all endpoints of a service in a registry, and pushes them if that affects any proxy. */
  edsUpdate(shard: ShardKey, service: ServiceName, endpoints: readonly Endpoint[]): void;
  /** {@link edsUpdate} without the push. @returns the push that it would cause */
  edsCacheUpdate(shard: ShardKey, service: ServiceName, endpoints: readonly Endpoint[]): PushType;
  /** The service itself changed; `delete` removes its shard. */
  svcUpdate(shard: ShardKey, service: ServiceName, event: ServiceEvent['event']): void;
  configUpdate(push: RegistryPush): void;
  proxyUpdate(clusterId: string, address: string): void;
  /** Removes a registry's endpoints from every service. */
  removeShard(shard: ShardKey): void;
  /** Removes services that a registry no longer has, without a push. */
  pruneShard(shard: ShardKey, keep: (service: ServiceName) => boolean): void;
}
