import type { ConfigKey } from '../../model/config/config.ts';
import type { PushType, ServiceName, ShardKey } from '../../model/services/endpoint-shards.ts';
import type { NetworkGateway } from '../../model/services/network-gateways.ts';
import type { LookupSubject, ProxyLookup } from '../../model/services/proxy-lookup.ts';
import type { Endpoint, Service, ServiceTarget } from '../../model/services/service.ts';
import type { WorkloadEvent } from '../../model/services/workload.ts';

/** `Kubernetes`, `External` (ServiceEntries), `Mock`, `Memory` or another name. */
export type ProviderId = string;

export interface ServiceDiscovery {
  readonly provider: ProviderId;
  readonly clusterId: string;
  /** Services, unique by namespace, host and address, in no particular order. */
  services(): readonly Service[];
  getService(hostname: string): Service | undefined;
  servicesOf(hostname: string, namespace: string): readonly Service[];
  getProxyServiceTargets(proxy: LookupSubject): readonly ServiceTarget[];
  /** `undefined` if unknown. */
  getProxyWorkloadLabels(proxy: LookupSubject): Readonly<Record<string, string>> | undefined;
  /** Locality as `REGION/ZONE/SUBZONE`. Empty if unknown. */
  getProxyLocality(proxy: LookupSubject): string;
  networkGateways(): readonly NetworkGateway[];
  readonly lookup: ProxyLookup;
}

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
 * Handlers must be added before `run`, and are called in the order of addition. When an event is reported, the registry already contains the change.
 * Content that exists at `run` is reported as `add`.
 */
export interface Controller {
  /** @throws Error if the registry runs */
  appendServiceHandler(handler: ServiceHandler): void;
  appendWorkloadHandler(handler: WorkloadHandler): void;
  /** @param events not called after `stop` */
  run(events?: RegistryEvents): void;
  stop(): void;
  hasSynced(): boolean;
}

/** Changes of content are reported to the registry's updater instead. */
export interface RegistryEvents {
  /** All initial content was delivered, and `hasSynced()` is true. */
  onSynced(): void;
  /** The registry failed. It is stopped, and created again after a delay. Its delivered content still applies. */
  onFailed(error: unknown): void;
}

export type Registry = ServiceDiscovery & Controller;

export interface RegistryOffer {
  readonly provider: ProviderId;
  readonly clusterId: string;
  /** A different revision replaces the running registry, for example after a change of credentials. If absent, the registry is never replaced. */
  readonly revision?: string;
  /** An error is handled as a failure of the registry, with a retry. */
  create(updates: XdsUpdater): Registry;
}

/** A registry that is no longer offered is removed with its endpoints. */
export type RegistryOffers = (offered: (offers: readonly RegistryOffer[]) => void) => () => void;

/** Reports nothing until all lists are known, so that startup waits for all of them. */
export function joinOffers(...lists: readonly RegistryOffers[]): RegistryOffers {
  return (onOffers) => {
    const latestOffers: (readonly RegistryOffer[] | undefined)[] = lists.map(() => undefined);
    const stops = lists.map((list, index) =>
      list((offers) => {
        latestOffers[index] = offers;
        if (latestOffers.every((registryOffers) => registryOffers !== undefined)) onOffers(latestOffers.flat());
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

/** Receives endpoints for the index of shards, and keys for the next push. */
export interface XdsUpdater {
  /** Services from all registries share endpoints, so a changed shard may affect clusters and listeners of another registry's service. */
  servicesOf(hostname: string, namespace: string): readonly Service[];
  /** Sets all endpoints of a service in a registry, and pushes them if any proxy is affected. */
  edsUpdate(shard: ShardKey, service: ServiceName, endpoints: readonly Endpoint[]): void;
  /**
   * Does not push.
   *
   * @returns the required push
   */
  edsCacheUpdate(shard: ShardKey, service: ServiceName, endpoints: readonly Endpoint[]): PushType;
  /** Called when the service itself changed. `delete` removes its shard. */
  svcUpdate(shard: ShardKey, service: ServiceName, event: ServiceEvent['event']): void;
  configUpdate(push: RegistryPush): void;
  proxyUpdate(clusterId: string, address: string): void;
  removeShard(shard: ShardKey): void;
  /** Does not push. */
  pruneShard(shard: ShardKey, shouldKeep: (service: ServiceName) => boolean): void;
}
