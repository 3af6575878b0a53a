import { isDeepStrictEqual } from 'node:util';
import type { ListedRegistry } from '../../../machines/discovery/protocol.ts';
import { type Config, configKeyOf, configKeyText } from '../../model/config/config.ts';
import { isIpAddress } from '../../model/fields/names.ts';
import { EndpointShards, type ServiceName, type ServiceShards } from '../../model/services/endpoint-shards.ts';
import { isDiscovered } from '../../model/services/kubernetes/discovery-namespaces.ts';
import {
  type KubernetesWorkloads,
  kubernetesServiceKinds,
} from '../../model/services/kubernetes/kubernetes-services.ts';
import { gatewaysOfNetworks, NetworkGateways, resolvedGateways } from '../../model/services/network-gateways.ts';
import type { ConfigObjectChange } from '../../model/services/registry-delta.ts';
import {
  emptyRegistry,
  type RegistryOptions,
  type ServiceRegistry,
  serviceKinds,
} from '../../model/services/service-registry.ts';
import type { WorkloadEvent } from '../../model/services/workload.ts';
import { runToEnd, type Steps } from '../../runtime/turns.ts';
import { AggregateRegistry } from './aggregate-registry.ts';
import { GatewayNames } from './gateway-names.ts';
import { Handover } from './handover.ts';
import { KubernetesRegistry } from './kubernetes-registry.ts';
import { MemoryRegistry } from './memory-registry.ts';
import type { Registry, RegistryEvents, RegistryOffer } from './registry.ts';
import type { KubernetesCounts, RegistryObserver } from './registry-observer.ts';
import { type PendingPush, RegistryUpdates } from './registry-updates.ts';
import { ServiceEntryRegistry } from './service-entry-registry.ts';
import { type KeyedObject, ServiceObjects, type ServiceObjectsOptions } from './service-objects.ts';
import { ServicesByAge } from './services-by-age.ts';

export interface MeshRegistriesOptions extends ServiceObjectsOptions {
  /** Names in `--registries` that are not built from objects: `Mock`, `Memory`. */
  readonly names?: readonly string[];
  readonly observer?: RegistryObserver | undefined;
  /** Called when gateway names have new addresses, which {@link MeshRegistries.takePendingPush} then returns as a push. */
  readonly gatewaysResolved?: () => void;
}

export interface ChangedConfigObject {
  readonly key: string;
  readonly event: 'add' | 'update' | 'delete';
}

export interface RunningRegistry extends RegistryEvents {
  /** Called once before {@link MeshRegistries.takePendingPush} returns the change. */
  onChanged(): void;
}

export type ObjectsByKey = ReadonlyMap<string, Config>;

/** If more services change, all are read and sorted again. */
const maxSingleServices = 64;

const serviceKindSet: ReadonlySet<string> = new Set(serviceKinds);

export class MeshRegistries {
  readonly #options: MeshRegistriesOptions;
  readonly #shards: EndpointShards;
  readonly #aggregate: AggregateRegistry;
  readonly gatewayNames = new GatewayNames(() => this.#onNamesChanged());
  readonly updates: RegistryUpdates;
  #settings: RegistryOptions;
  #kubernetes: KubernetesRegistry;
  #entries: ServiceEntryRegistry;
  readonly objects: ServiceObjects;
  /** Workload events to pass on to the other object registry. */
  #workloads: { readonly targetRegistry: 'entries' | 'kubernetes'; readonly event: WorkloadEvent }[] = [];
  #snapshot: ServiceRegistry = emptyRegistry;
  readonly #services = new ServicesByAge();
  #offers: ReadonlyMap<string, RegistryOffer> = new Map();
  readonly #unpublishedNames = new Set<string>();
  /** Number of unfinished stepwise operations, during which the registries are inconsistent. */
  #unfinishedOperations = 0;
  #haveNamesChanged = false;
  readonly #notifiedNames = new Set<string>();
  /** Names of the object registries and of the registries in flags, as `PROVIDER/CLUSTER`. */
  readonly #builtInNames: readonly string[];

  constructor(settings: RegistryOptions, options: MeshRegistriesOptions = {}) {
    this.#options = options;
    this.#settings = settings;
    this.objects = new ServiceObjects(options, () => this.#kubernetes);
    this.#shards = new EndpointShards(settings);
    this.updates = new RegistryUpdates(this.#shards, () => this.#aggregate);
    this.#aggregate = new AggregateRegistry(settings.clusterId, this.updates);
    [this.#kubernetes, this.#entries] = this.#objectRegistries();
    for (const shard of (options.names ?? []).flatMap((name) => memoryShards(name, settings.clusterId))) {
      this.#aggregate.addRegistry(new MemoryRegistry(shard, this.updates));
    }
    this.#builtInNames = this.registries.map(nameOf);
    this.#aggregate.run();
  }

  get registries(): readonly Registry[] {
    return this.#aggregate.registries;
  }

  get snapshot(): ServiceRegistry {
    return this.#snapshot;
  }

  /** Sets the additional registries, and returns all registries. {@link removeOtherRegistries} removes those that are no longer offered. */
  offer(offers: readonly RegistryOffer[]): readonly ListedRegistry[] {
    const takenName = offers.map(nameOf).find((name) => this.#builtInNames.includes(name));
    if (takenName !== undefined) throw new Error(`registry ${takenName} already exists`);
    this.#offers = new Map(offers.map((offer) => [nameOf(offer), offer]));
    return [
      ...this.#builtInNames.map((registry) => ({ registry, revision: '' })),
      ...offers.map((offer) => ({ registry: nameOf(offer), revision: offer.revision ?? '' })),
    ];
  }

  /**
   * A replacement becomes active when all its content is delivered.
   *
   * @param name `PROVIDER/CLUSTER`
   * @returns a function that stops the registry, but keeps its content
   */
  run(name: string, report: RunningRegistry): () => void {
    const offer = this.#offers.get(name);
    if (offer === undefined) {
      report.onSynced();
      return () => {};
    }
    let isStopped = false;
    let isSynced = false;
    const previous = this.#aggregate.registryOf(offer.provider, offer.clusterId);
    const onForwarded = (): void => {
      if (isStopped || this.#notifiedNames.has(name)) return;
      this.#notifiedNames.add(name);
      // Deferred until the registry has applied its change.
      queueMicrotask(() => isStopped || report.onChanged());
    };
    const handover = new Handover(this.updates, onForwarded, previous !== undefined);
    const registry = offer.create(handover);
    const events: RegistryEvents = {
      onSynced: () => {
        if (isStopped || isSynced) return;
        isSynced = true;
        if (previous !== undefined && !this.registries.includes(registry)) this.#replace(registry, handover);
        report.onSynced();
      },
      onFailed: (error) => isStopped || report.onFailed(error),
    };
    const stop = (): void => {
      isStopped = true;
      this.#notifiedNames.delete(name);
      registry.stop();
    };
    try {
      if (previous === undefined) this.#aggregate.addRegistry(registry, events);
      else registry.run(events);
      if (registry.hasSynced()) events.onSynced();
    } catch (error) {
      stop();
      throw error;
    }
    return stop;
  }

  #replace(registry: Registry, handover: Handover): void {
    const { provider, clusterId } = registry;
    const services = this.#aggregate.registryOf(provider, clusterId)?.services() ?? [];
    this.#aggregate.replaceRegistry(registry);
    handover.release({ provider, cluster: clusterId }, services, registry);
  }

  removeOtherRegistries(names: readonly string[]): void {
    runToEnd(this.removeOtherRegistriesInSteps(names));
  }

  *removeOtherRegistriesInSteps(names: readonly string[]): Steps<void> {
    const removedRegistries = this.registries.filter((registry) => !names.includes(nameOf(registry)));
    for (const { provider, clusterId } of removedRegistries) this.#aggregate.removeRegistry(provider, clusterId);
    if (removedRegistries.length > 0) yield* this.#refreshInSteps();
  }

  get endpointCount(): number {
    return this.#shards.count;
  }

  get counts(): KubernetesCounts {
    return this.#kubernetes.counts;
  }

  /** `Kubernetes/CLUSTER` */
  get clusterRegistryName(): string {
    return nameOf(this.#kubernetes);
  }

  /** Contains Pods and Nodes in configuration and cluster. Each list keeps its identity until one of its objects changes. */
  get workloads(): KubernetesWorkloads {
    return this.#kubernetes.workloads;
  }

  shards(): Iterable<ServiceName & ServiceShards> {
    return this.#shards.services();
  }

  load(objects: ObjectsByKey): void {
    runToEnd(this.loadInSteps(objects));
  }

  /** Until the steps finish, the snapshot is unchanged and no other operation may change objects. This applies to all generators below. */
  *loadInSteps(objects: ObjectsByKey): Steps<void> {
    const currentObjects = new Map<string, Config>();
    for (const [key, config] of objects) {
      if (serviceKindSet.has(config.kind)) currentObjects.set(key, config);
      yield;
    }
    const removedObjects = [...this.objects.configuredObjects.keys()]
      .filter((key) => !currentObjects.has(key))
      .map((key): KeyedObject => [key, undefined]);
    yield* this.#runGuarded(this.#followInSteps([...removedObjects, ...currentObjects]));
  }

  apply(changes: readonly ChangedConfigObject[], objects: ObjectsByKey): void {
    runToEnd(this.applyInSteps(changes, objects));
  }

  *applyInSteps(changes: readonly ChangedConfigObject[], objects: ObjectsByKey): Steps<void> {
    const keys = [...new Set(changes.map(({ key }) => key))];
    const changedKeys = keys.filter((key) => serviceKindSet.has(key.slice(0, key.indexOf('/'))));
    yield* this.#runGuarded(this.#followInSteps(changedKeys.map((key): KeyedObject => [key, objects.get(key)])));
  }

  /** Requires a full push. */
  configure(settings: RegistryOptions): void {
    runToEnd(this.configureInSteps(settings));
  }

  *configureInSteps(settings: RegistryOptions): Steps<void> {
    if (isDeepStrictEqual(settings, this.#settings)) return;
    this.#settings = settings;
    yield* this.rebuildInSteps();
  }

  rebuild(): void {
    runToEnd(this.rebuildInSteps());
  }

  *rebuildInSteps(): Steps<void> {
    yield* this.#runGuarded(this.#rebuildRegistries());
  }

  *#runGuarded(steps: Steps<void>): Steps<void> {
    this.#unfinishedOperations++;
    try {
      yield* steps;
    } finally {
      this.#unfinishedOperations--;
    }
  }

  *#rebuildRegistries(): Steps<void> {
    for (const { provider, clusterId } of [this.#kubernetes, this.#entries]) {
      this.#aggregate.removeRegistry(provider, clusterId);
    }
    this.#workloads = [];
    [this.#kubernetes, this.#entries] = this.#objectRegistries();
    const { changes } = yield* this.objects.updateAllObjects();
    yield* this.#deliverInSteps(changes);
    yield* this.#refreshInSteps();
  }

  takePendingPush(): PendingPush {
    this.#notifiedNames.clear();
    return this.updates.takePendingPush();
  }

  /** Keys of services and endpoints that changed since the last call of {@link onPublished}. */
  get unpublishedKeys(): ReadonlySet<string> {
    return this.#unpublishedNames;
  }

  /** Called when a push context contains {@link snapshot}. */
  onPublished(): void {
    this.#unpublishedNames.clear();
  }

  stop(): void {
    this.#aggregate.stop();
  }

  refresh(): void {
    runToEnd(this.#refreshInSteps());
  }

  *#refreshInSteps(): Steps<void> {
    yield* this.#forwardWorkloads();
    let haveServicesChanged = false;
    do haveServicesChanged = (yield* this.#updatingServices()) || haveServicesChanged;
    while (this.updates.haveServicesChanged);
    // No yield from here on, so that each registry change is either in the snapshot or pending.
    for (const key of this.updates.pendingKeys) this.#unpublishedNames.add(key);
    const { services, gateways } = this.#snapshot;
    const currentServices = haveServicesChanged ? this.#services.services : services;
    const haveGatewaysChanged = haveServicesChanged || this.#haveNamesChanged;
    this.#haveNamesChanged = false;
    this.#snapshot = {
      services: currentServices,
      endpoints: this.#shards.index,
      workloads: this.#aggregate.lookup,
      gateways: haveGatewaysChanged ? this.#gateways(currentServices, gateways) : gateways,
    };
  }

  *#updatingServices(): Steps<boolean> {
    const changedServices = this.updates.takeServicesChanged();
    if (changedServices === 'all' || changedServices.length > maxSingleServices || this.#snapshot === emptyRegistry) {
      yield* this.#services.setting(this.#aggregate.services());
      return true;
    }
    for (const name of changedServices) {
      this.#services.setNamed(name, this.#aggregate.servicesOf(name.hostname, name.namespace));
      yield;
    }
    return changedServices.length > 0;
  }

  #objectRegistries(): [KubernetesRegistry, ServiceEntryRegistry] {
    const kubernetes = new KubernetesRegistry(this.#settings, this.updates);
    const entries = new ServiceEntryRegistry(this.#settings, this.updates);
    // Each registry can select workloads of the other.
    kubernetes.appendWorkloadHandler((event) => this.#workloads.push({ targetRegistry: 'entries', event }));
    entries.appendWorkloadHandler((event) => this.#workloads.push({ targetRegistry: 'kubernetes', event }));
    for (const registry of [kubernetes, entries]) this.#aggregate.addRegistry(registry);
    return [kubernetes, entries];
  }

  *#followInSteps(objects: Iterable<KeyedObject>): Steps<void> {
    const { changes, events } = yield* this.objects.updateInSteps(objects);
    for (const { key, event } of events) this.#options.observer?.registryEvent?.(key.slice(0, key.indexOf('/')), event);
    yield* this.#deliverInSteps(changes);
    yield* this.#refreshInSteps();
  }

  *#deliverInSteps(changes: readonly ConfigObjectChange<Config>[]): Steps<void> {
    const kubernetes = changes.filter(({ key }) => kubernetesServiceKinds.has(key.kind));
    const entries = changes.filter(({ key }) => !kubernetesServiceKinds.has(key.kind));
    if (entries.length > 0) yield* this.#entries.changeObjectsInSteps(this.#changesOfMembers(entries, kubernetes));
    else if (kubernetes.some(isNamespace))
      yield* this.#entries.changeObjectsInSteps(this.#changesOfMembers([], kubernetes));
    if (kubernetes.length > 0) yield* this.#kubernetes.changeObjectsInSteps(kubernetes);
  }

  #changesOfMembers(
    changes: readonly ConfigObjectChange<Config>[],
    kubernetesChanges: readonly ConfigObjectChange<Config>[],
  ): readonly ConfigObjectChange<Config>[] {
    const { discoverySelectors } = this.#settings;
    if (discoverySelectors.length === 0) return changes;
    const changedNamespaces = new Set(kubernetesChanges.filter(isNamespace).map(({ key }) => key.name));
    const affectedChanges = [...this.objects.configuredObjects.values()]
      .filter(({ kind, namespace }) => changedNamespaces.has(namespace) && !kubernetesServiceKinds.has(kind))
      .map(configKeyOf)
      .map((key) => ({ key, current: this.objects.limitedConfigured(configKeyText(key)) }));
    return [...changes, ...affectedChanges].map(({ key, current }) => {
      const { labels } = this.objects.configuredObjects.get(`Namespace//${key.namespace}`) ?? {};
      return { key, current: isDiscovered(key.namespace, labels, discoverySelectors) ? current : undefined };
    });
  }

  *#forwardWorkloads(): Steps<void> {
    if (this.#workloads.length === 0) return;
    const workloads = Map.groupBy(this.#workloads, ({ targetRegistry }) => targetRegistry);
    this.#workloads = [];
    yield* this.#entries.changeWorkloadsInSteps((workloads.get('entries') ?? []).map(({ event }) => event));
    yield* this.#kubernetes.changeWorkloadsInSteps((workloads.get('kubernetes') ?? []).map(({ event }) => event));
  }

  #gateways(services: ServiceRegistry['services'], previous: NetworkGateways): NetworkGateways {
    const namedGateways = gatewaysOfNetworks(this.#settings.networks, (host) =>
      services.filter((s) => s.hostname === host),
    );
    const allGateways = [...this.#aggregate.networkGateways(), ...namedGateways];
    this.gatewayNames.track(
      new Set(allGateways.map(({ address }) => address).filter((address) => !isIpAddress(address))),
    );
    const currentGateways = new NetworkGateways(
      resolvedGateways(allGateways, (name) => this.gatewayNames.addressesOf(name)),
    );
    if (currentGateways.isEqualTo(previous)) return previous;
    this.updates.configUpdate({ configs: [], forced: true, reason: 'networks' });
    return currentGateways;
  }

  #onNamesChanged(): void {
    if (this.#unfinishedOperations > 0) {
      this.#haveNamesChanged = true;
      this.#options.gatewaysResolved?.();
      return;
    }
    const gateways = this.#gateways(this.#snapshot.services, this.#snapshot.gateways);
    if (gateways === this.#snapshot.gateways) return;
    this.#snapshot = { ...this.#snapshot, gateways };
    this.#options.gatewaysResolved?.();
  }
}

function nameOf({ provider, clusterId }: Pick<Registry, 'provider' | 'clusterId'>): string {
  return `${provider}/${clusterId}`;
}

function isNamespace({ key }: ConfigObjectChange<Config>): boolean {
  return key.kind === 'Namespace';
}

function memoryShards(name: string, clusterId: string): { readonly provider: string; readonly cluster: string }[] {
  if (name === 'Memory') return [{ provider: 'Memory', cluster: clusterId }];
  if (name !== 'Mock') return [];
  return ['mockAdapter1', 'mockAdapter2'].map((cluster) => ({ provider: 'Mock', cluster }));
}
