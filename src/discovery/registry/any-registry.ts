import type { NetworkGateway } from '../../model/services/network-gateways.ts';
import type { LookupSubject, ProxyLookup } from '../../model/services/proxy-lookup.ts';
import type { Service, ServiceTarget } from '../../model/services/service.ts';
import { compareServiceAge } from '../../model/services/service-registry.ts';
import { serviceTargets } from '../../model/services/service-targets.ts';
import type { Registry, RegistryEvents, ServiceHandler, WorkloadHandler } from './registry.ts';
import { RegistryHandlers } from './registry-handlers.ts';

export interface RegistryFeed {
  attach(registry: AnyRegistry): void;
  detach(registry: AnyRegistry): void;
}

export abstract class AnyRegistry implements Registry {
  abstract readonly provider: string;
  abstract readonly clusterId: string;
  protected readonly handlers = new RegistryHandlers();
  /** `undefined` if the content is set externally. A registry with a feed is synced after {@link complete}. */
  protected readonly feed: RegistryFeed | undefined = undefined;
  #events: RegistryEvents | undefined;
  #isComplete = false;

  abstract services(): readonly Service[];
  abstract servicesOf(hostname: string, namespace: string): readonly Service[];
  abstract get lookup(): ProxyLookup;
  abstract networkGateways(): readonly NetworkGateway[];

  getService(hostname: string): Service | undefined {
    return this.services()
      .filter((service) => service.hostname === hostname)
      .toSorted(compareServiceAge)[0];
  }

  getProxyServiceTargets(proxy: LookupSubject): readonly ServiceTarget[] {
    const refs = this.lookup.targetsOf(proxy);
    return serviceTargets(proxy.configNamespace, refs, (host, namespace) => this.servicesOf(host, namespace));
  }

  getProxyWorkloadLabels(proxy: LookupSubject): Readonly<Record<string, string>> | undefined {
    return this.lookup.workloadOf(proxy)?.labels;
  }

  getProxyLocality(proxy: LookupSubject): string {
    return this.lookup.workloadOf(proxy)?.locality ?? '';
  }

  appendServiceHandler(handler: ServiceHandler): void {
    this.handlers.appendServiceHandler(handler);
  }

  appendWorkloadHandler(handler: WorkloadHandler): void {
    this.handlers.appendWorkloadHandler(handler);
  }

  run(events?: RegistryEvents): void {
    this.#events = events;
    this.handlers.run();
    this.deliverPending();
    this.feed?.attach(this);
  }

  stop(): void {
    this.handlers.stop();
    this.feed?.detach(this);
  }

  hasSynced(): boolean {
    return this.handlers.isRunning && (this.feed === undefined || this.#isComplete);
  }

  complete(): void {
    if (this.#isComplete) return;
    this.#isComplete = true;
    this.notifySynced();
  }

  protected deliverPending(): void {}

  /** Called if {@link hasSynced} becomes true after `run` has returned. */
  protected notifySynced(): void {
    if (this.handlers.isRunning) this.#events?.onSynced();
  }

  protected notifyFailed(error: unknown): void {
    if (this.handlers.isRunning) this.#events?.onFailed(error);
  }
}
