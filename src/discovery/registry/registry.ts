/**
 * What a source of services is to the control plane (spec/discovery.md §5.1): a directory's objects today, a live cluster
 * or Consul later. A registry answers questions, says what changed, and hands its endpoints over as its shard.
 */
import type { ConfigKey } from '../../model/config/config.ts';
import type { PushType, ServiceName, ShardKey } from '../../model/services/endpoint-shards.ts';
import type { NetworkGateway } from '../../model/services/network-gateways.ts';
import type { LookupSubject, ProxyLookup } from '../../model/services/proxy-lookup.ts';
import type { Endpoint, Service, ServiceTarget } from '../../model/services/service.ts';
import type { WorkloadEvent } from '../../model/services/workload.ts';

/** `Kubernetes`, `External` (ServiceEntries), `Mock`, `Memory`; others as they come. */
export type ProviderId = string;

export interface ServiceDiscovery {
  /** With the cluster's id: which registry it is, and the key of its shard. */
  readonly provider: ProviderId;
  readonly clusterId: string;
  /** Unique by namespace, host and address, in no particular order. */
  services(): readonly Service[];
  /** The oldest of the host, whatever its namespace. */
  getService(hostname: string): Service | undefined;
  /** Those of a host in one namespace. */
  servicesOf(hostname: string, namespace: string): readonly Service[];
  /** The service ports that a proxy's own workload serves. */
  getProxyServiceTargets(proxy: LookupSubject): readonly ServiceTarget[];
  /** Labels of a proxy's workload; undefined when the registry does not know it. */
  getProxyWorkloadLabels(proxy: LookupSubject): Readonly<Record<string, string>> | undefined;
  /** `region/zone/subzone`; empty when the registry does not know. */
  getProxyLocality(proxy: LookupSubject): string;
  networkGateways(): readonly NetworkGateway[];
  /** The same knowledge of proxies, of this moment and for good. */
  readonly lookup: ProxyLookup;
}

/** What became of the services of one host in one namespace. */
export interface ServiceEvent extends ServiceName {
  readonly event: 'add' | 'update' | 'delete';
  /** Empty when the host is new. */
  readonly previous: readonly Service[];
  /** Empty when it is gone. */
  readonly current: readonly Service[];
}

export type ServiceHandler = (event: ServiceEvent) => void;
export type WorkloadHandler = (event: WorkloadEvent) => void;

/**
 * Handlers are added before `run` and called one after the other in the order in which they were added; when one is
 * called the registry is at least as new as the event. What the registry holds when it is run comes as `add`.
 */
export interface Controller {
  /** @throws Error once the registry runs */
  appendServiceHandler(handler: ServiceHandler): void;
  /** @throws Error once the registry runs */
  appendWorkloadHandler(handler: WorkloadHandler): void;
  /** @param events what becomes of the registry; not called any more once it was stopped */
  run(events?: RegistryEvents): void;
  /** Nothing more happens to anybody. */
  stop(): void;
  /** Everything that there was at the start has been handed over. */
  hasSynced(): boolean;
}

/** What a registry says of itself. That it changed need not be said: whatever it hands over says so. */
export interface RegistryEvents {
  /** Everything that there was at the start has been handed over: `hasSynced()` is true. */
  synced(): void;
  /** It cannot go on. It is stopped, and another is made in its place after a while; what it handed over stays in force. */
  failed(error: unknown): void;
}

export type Registry = ServiceDiscovery & Controller;

/** A registry that can be had. */
export interface RegistryOffer {
  readonly provider: ProviderId;
  readonly clusterId: string;
  /** Another one: another registry in the place of the one before, as after new credentials. Absent: always the same. */
  readonly revision?: string;
  /** Makes it, whenever it is to be run. What it throws is a failure of the registry: it is tried again. */
  make(updates: XdsUpdater): Registry;
}

/**
 * Says which registries there are, at once and whenever they are others. One that is offered no more goes, and its
 * endpoints with it. Returns how to end that.
 */
export type RegistryOffers = (offered: (offers: readonly RegistryOffer[]) => void) => () => void;

/** Several lists of registries as one. Nothing is offered before each of them is known: the start would go on without the others. */
export function joinedOffers(...lists: readonly RegistryOffers[]): RegistryOffers {
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

/** Where registries hand over what changed: endpoints into the index of shards, and what a push must name. */
export interface XdsUpdater {
  /**
   * What all registries together have of a host in one namespace. They share its endpoints: a change in the shard of one
   * can be a change of clusters and listeners of another's service.
   */
  servicesOf(hostname: string, namespace: string): readonly Service[];
  /** Endpoints of a service in a registry, all of them: kept, and pushed if anybody could notice. */
  edsUpdate(shard: ShardKey, service: ServiceName, endpoints: readonly Endpoint[]): void;
  /** The same without the push. Returns which push it would have been. */
  edsCacheUpdate(shard: ShardKey, service: ServiceName, endpoints: readonly Endpoint[]): PushType;
  /** The service itself is another; on `delete` its shard goes. */
  svcUpdate(shard: ShardKey, service: ServiceName, event: ServiceEvent['event']): void;
  configUpdate(push: RegistryPush): void;
  /** The workload of a proxy has other labels, or another place. */
  proxyUpdate(clusterId: string, address: string): void;
  /** A registry is gone: with it its part of every service. */
  removeShard(shard: ShardKey): void;
  /** Services that a registry does not have any more go, without a push. */
  pruneShard(shard: ShardKey, keep: (service: ServiceName) => boolean): void;
}
