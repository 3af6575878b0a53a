/** All registries of this control plane, and what they know together (spec/discovery.md §5.1, §5.7, §5.8). */
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
import { atOnce, type Steps } from '../../runtime/turns.ts';
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
  /** Of `--registries`, beside the objects' own: `Mock`, `Memory`. */
  readonly names?: readonly string[];
  readonly observer?: RegistryObserver | undefined;
  /**
   * Names of gateways have other addresses: there is something to {@link MeshRegistries.take} that nobody asked for.
   */
  readonly gatewaysResolved?: () => void;
}

/** An object that came, changed or went, by its key `Kind/namespace/name`. */
export interface ChangedObject {
  readonly key: string;
  readonly event: 'add' | 'update' | 'delete';
}

/** What becomes of a registry while it runs. */
export interface RunningRegistry extends RegistryEvents {
  /** There is something to {@link MeshRegistries.take}. Called once until it is taken, after the registry's change. */
  changed(): void;
}

/** The objects of one moment. */
export type Objects = ReadonlyMap<string, Config>;

/** Of more names together, all services are asked for and sorted. */
const mostSingleServices = 64;

const ofServices: ReadonlySet<string> = new Set(serviceKinds);

export class MeshRegistries {
  readonly #options: MeshRegistriesOptions;
  readonly #shards: EndpointShards;
  readonly #aggregate: AggregateRegistry;
  /** Host names that gateways have, and the addresses of those that resolve. */
  readonly gatewayNames = new GatewayNames(() => this.#namesChanged());
  /** Where registries of this control plane hand over what changed. */
  readonly updates: RegistryUpdates;
  #settings: RegistryOptions;
  #kubernetes: KubernetesRegistry;
  #entries: ServiceEntryRegistry;
  /** What the registries of objects were told of. */
  readonly objects: ServiceObjects;
  /** What registries said of their workloads and the others were not told yet. */
  #workloads: { readonly to: 'entries' | 'kubernetes'; readonly event: WorkloadEvent }[] = [];
  #snapshot: ServiceRegistry = emptyRegistry;
  readonly #services = new ServicesByAge();
  /** Registries beside the objects' own and the named ones, by `Provider/cluster`. */
  #offers: ReadonlyMap<string, RegistryOffer> = new Map();
  readonly #unpublished = new Set<string>();
  /** Works in steps that are not done: until then what the registries say together is of no moment. */
  #underWay = 0;
  /** Names of gateways have had other addresses meanwhile. */
  #namesMoved = false;
  /** Whose actors were told that there is something to take. */
  readonly #notified = new Set<string>();
  /** `Provider/cluster` of the objects' own registries and the named ones. */
  readonly #own: readonly string[];

  constructor(settings: RegistryOptions, options: MeshRegistriesOptions = {}) {
    this.#options = options;
    this.#settings = settings;
    this.objects = new ServiceObjects(options, () => this.#kubernetes);
    this.#shards = new EndpointShards(settings);
    this.updates = new RegistryUpdates(this.#shards, () => this.#aggregate);
    this.#aggregate = new AggregateRegistry(settings.clusterId, this.updates);
    [this.#kubernetes, this.#entries] = this.#objectRegistries();
    for (const shard of (options.names ?? []).flatMap((name) => memoriesOf(name, settings.clusterId))) {
      this.#aggregate.addRegistry(new MemoryRegistry(shard, this.updates));
    }
    this.#own = this.registries.map(nameOf);
    this.#aggregate.run();
  }

  /** In the order in which they are asked. */
  get registries(): readonly Registry[] {
    return this.#aggregate.registries;
  }

  /** What all of them know at this moment. */
  get snapshot(): ServiceRegistry {
    return this.#snapshot;
  }

  /** Those that there are: the objects' own, the named ones, and these. What of others is left goes with {@link keepOnly}. */
  offer(offers: readonly RegistryOffer[]): readonly ListedRegistry[] {
    const taken = offers.map(nameOf).find((name) => this.#own.includes(name));
    if (taken !== undefined) throw new Error(`registry ${taken} already exists`);
    this.#offers = new Map(offers.map((offer) => [nameOf(offer), offer]));
    return [
      ...this.#own.map((registry) => ({ registry, revision: '' })),
      ...offers.map((offer) => ({ registry: nameOf(offer), revision: offer.revision ?? '' })),
    ];
  }

  /**
   * Runs a registry that was offered, or follows one that runs anyway. In the place of another it comes when it has
   * handed over all that it has.
   *
   * @param name `Provider/cluster`
   * @returns how to stop it; what it handed over stays
   * @throws what the registry throws when it is made or run
   */
  run(name: string, report: RunningRegistry): () => void {
    const offer = this.#offers.get(name);
    if (offer === undefined) {
      report.synced();
      return () => {};
    }
    let isOver = false;
    let isWhole = false;
    const before = this.#aggregate.registryOf(offer.provider, offer.clusterId);
    const moved = (): void => {
      if (isOver || this.#notified.has(name)) return;
      this.#notified.add(name);
      // The registry is in the midst of its change.
      queueMicrotask(() => isOver || report.changed());
    };
    const handover = new Handover(this.updates, moved, before !== undefined);
    const registry = offer.make(handover);
    const events: RegistryEvents = {
      synced: () => {
        if (isOver || isWhole) return;
        isWhole = true;
        if (before !== undefined && !this.registries.includes(registry)) this.#replace(registry, handover);
        report.synced();
      },
      failed: (error) => isOver || report.failed(error),
    };
    const stop = (): void => {
      isOver = true;
      this.#notified.delete(name);
      registry.stop();
    };
    try {
      if (before === undefined) this.#aggregate.addRegistry(registry, events);
      else registry.run(events);
      if (registry.hasSynced()) events.synced();
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

  /** Takes away whatever is left of registries that are none of these (`Provider/cluster`): their endpoints too. */
  keepOnly(names: readonly string[]): void {
    atOnce(this.keepingOnly(names));
  }

  /** The same in steps. */
  *keepingOnly(names: readonly string[]): Steps<void> {
    const gone = this.registries.filter((registry) => !names.includes(nameOf(registry)));
    for (const { provider, clusterId } of gone) this.#aggregate.removeRegistry(provider, clusterId);
    if (gone.length > 0) yield* this.#refreshing();
  }

  get endpointCount(): number {
    return this.#shards.count;
  }

  get counts(): KubernetesCounts {
    return this.#kubernetes.counts;
  }

  /** `Kubernetes/cluster` of the followed cluster. */
  get ofCluster(): string {
    return nameOf(this.#kubernetes);
  }

  /** Pods and Nodes of the configuration and of the cluster: each list is the same one until one of its objects changes. */
  get workloads(): KubernetesWorkloads {
    return this.#kubernetes.workloads;
  }

  /** Endpoints by service and registry, for people. */
  shards(): Iterable<ServiceName & ServiceShards> {
    return this.#shards.services();
  }

  /** Brings the registries to these objects, whatever they were told before. */
  load(objects: Objects): void {
    atOnce(this.loading(objects));
  }

  /**
   * The same in steps, as are all of the following. The snapshot is what it was until they are done; what changes objects
   * must not be begun before the last of it is done.
   */
  *loading(objects: Objects): Steps<void> {
    const now = new Map<string, Config>();
    for (const [key, config] of objects) {
      if (ofServices.has(config.kind)) now.set(key, config);
      yield;
    }
    const gone = [...this.objects.configured.keys()]
      .filter((key) => !now.has(key))
      .map((key): KeyedObject => [key, undefined]);
    yield* this.#whole(this.#following([...gone, ...now]));
  }

  /** Tells the registries of these objects of the configuration alone, and of what changed in the cluster. */
  apply(changes: readonly ChangedObject[], objects: Objects): void {
    atOnce(this.applying(changes, objects));
  }

  *applying(changes: readonly ChangedObject[], objects: Objects): Steps<void> {
    const keys = [...new Set(changes.map(({ key }) => key))];
    const changed = keys.filter((key) => ofServices.has(key.slice(0, key.indexOf('/'))));
    yield* this.#whole(this.#following(changed.map((key): KeyedObject => [key, objects.get(key)])));
  }

  /** Other settings make other services: then the objects' registries are made anew, and everything must be pushed. */
  configure(settings: RegistryOptions): void {
    atOnce(this.configuring(settings));
  }

  *configuring(settings: RegistryOptions): Steps<void> {
    if (isDeepStrictEqual(settings, this.#settings)) return;
    this.#settings = settings;
    yield* this.remaking();
  }

  /** Makes the objects' registries anew, of the objects that they were told of. */
  remake(): void {
    atOnce(this.remaking());
  }

  *remaking(): Steps<void> {
    yield* this.#whole(this.#remaking());
  }

  /** What is done in steps, and not to be seen half done. */
  *#whole(work: Steps<void>): Steps<void> {
    this.#underWay++;
    try {
      yield* work;
    } finally {
      this.#underWay--;
    }
  }

  *#remaking(): Steps<void> {
    for (const { provider, clusterId } of [this.#kubernetes, this.#entries]) {
      this.#aggregate.removeRegistry(provider, clusterId);
    }
    this.#workloads = [];
    [this.#kubernetes, this.#entries] = this.#objectRegistries();
    const { changes } = yield* this.objects.all();
    yield* this.#handingOver(changes);
    yield* this.#refreshing();
  }

  /** What a push must name since this was last asked. */
  take(): PendingPush {
    this.#notified.clear();
    return this.updates.take();
  }

  /** Keys of services and endpoints of {@link snapshot} that differ from those at the last call of {@link published}. */
  get unpublished(): ReadonlySet<string> {
    return this.#unpublished;
  }

  /** Call it when a push context has the services and endpoints of {@link snapshot}. */
  published(): void {
    this.#unpublished.clear();
  }

  stop(): void {
    this.#aggregate.stop();
  }

  /** Takes over what registries handed over by themselves. */
  refresh(): void {
    atOnce(this.#refreshing());
  }

  *#refreshing(): Steps<void> {
    yield* this.#passingOnWorkloads();
    let servicesChanged = false;
    do servicesChanged = (yield* this.#takingServices()) || servicesChanged;
    while (this.updates.haveServicesChanged);
    // From here on nobody has a turn: what registries hand over by themselves is in the snapshot, or not taken yet.
    for (const key of this.updates.pendingKeys) this.#unpublished.add(key);
    const { services, gateways } = this.#snapshot;
    const now = servicesChanged ? this.#services.items : services;
    const gatewaysMoved = servicesChanged || this.#namesMoved;
    this.#namesMoved = false;
    this.#snapshot = {
      services: now,
      endpoints: this.#shards.index,
      workloads: this.#aggregate.lookup,
      gateways: gatewaysMoved ? this.#gateways(now, gateways) : gateways,
    };
  }

  /** @returns whether any changed */
  *#takingServices(): Steps<boolean> {
    const changed = this.updates.takeServicesChanged();
    if (changed === 'all' || changed.length > mostSingleServices || this.#snapshot === emptyRegistry) {
      yield* this.#services.setting(this.#aggregate.services());
      return true;
    }
    for (const name of changed) {
      this.#services.setNamed(name, this.#aggregate.servicesOf(name.hostname, name.namespace));
      yield;
    }
    return changed.length > 0;
  }

  #objectRegistries(): [KubernetesRegistry, ServiceEntryRegistry] {
    const kubernetes = new KubernetesRegistry(this.#settings, this.updates);
    const entries = new ServiceEntryRegistry(this.#settings, this.updates);
    // Each may select the other's workloads (§5.5).
    kubernetes.appendWorkloadHandler((event) => this.#workloads.push({ to: 'entries', event }));
    entries.appendWorkloadHandler((event) => this.#workloads.push({ to: 'kubernetes', event }));
    for (const registry of [kubernetes, entries]) this.#aggregate.addRegistry(registry);
    return [kubernetes, entries];
  }

  *#following(objects: Iterable<KeyedObject>): Steps<void> {
    const { changes, events } = yield* this.objects.updating(objects);
    for (const { key, event } of events) this.#options.observer?.registryEvent?.(key.slice(0, key.indexOf('/')), event);
    yield* this.#handingOver(changes);
    yield* this.#refreshing();
  }

  *#handingOver(changes: readonly ConfigObjectChange<Config>[]): Steps<void> {
    const kubernetes = changes.filter(({ key }) => kubernetesServiceKinds.has(key.kind));
    const entries = changes.filter(({ key }) => !kubernetesServiceKinds.has(key.kind));
    if (entries.length > 0) yield* this.#entries.changingObjects(this.#discovered(entries, kubernetes));
    else if (kubernetes.some(isNamespace)) yield* this.#entries.changingObjects(this.#discovered([], kubernetes));
    if (kubernetes.length > 0) yield* this.#kubernetes.changingObjects(kubernetes);
  }

  /** Objects of namespaces that do not take part count as if they were not there. */
  #discovered(
    changes: readonly ConfigObjectChange<Config>[],
    others: readonly ConfigObjectChange<Config>[],
  ): readonly ConfigObjectChange<Config>[] {
    const { discoverySelectors } = this.#settings;
    if (discoverySelectors.length === 0) return changes;
    const moved = new Set(others.filter(isNamespace).map(({ key }) => key.name));
    const again = [...this.objects.configured.values()]
      .filter(({ kind, namespace }) => moved.has(namespace) && !kubernetesServiceKinds.has(kind))
      .map(configKeyOf)
      .map((key) => ({ key, current: this.objects.configuredInForce(configKeyText(key)) }));
    return [...changes, ...again].map(({ key, current }) => {
      const { labels } = this.objects.configured.get(`Namespace//${key.namespace}`) ?? {};
      return { key, current: isDiscovered(key.namespace, labels, discoverySelectors) ? current : undefined };
    });
  }

  *#passingOnWorkloads(): Steps<void> {
    if (this.#workloads.length === 0) return;
    const workloads = Map.groupBy(this.#workloads, ({ to }) => to);
    this.#workloads = [];
    yield* this.#entries.changingWorkloads((workloads.get('entries') ?? []).map(({ event }) => event));
    yield* this.#kubernetes.changingWorkloads((workloads.get('kubernetes') ?? []).map(({ event }) => event));
  }

  #gateways(services: ServiceRegistry['services'], before: NetworkGateways): NetworkGateways {
    const named = gatewaysOfNetworks(this.#settings.networks, (host) => services.filter((s) => s.hostname === host));
    const all = [...this.#aggregate.networkGateways(), ...named];
    this.gatewayNames.want(new Set(all.map(({ address }) => address).filter((address) => !isIpAddress(address))));
    const now = new NetworkGateways(resolvedGateways(all, (name) => this.gatewayNames.addressesOf(name)));
    if (now.isSameAs(before)) return before;
    this.updates.configUpdate({ configs: [], forced: true, reason: 'networks' });
    return now;
  }

  #namesChanged(): void {
    if (this.#underWay > 0) {
      this.#namesMoved = true;
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

function memoriesOf(name: string, clusterId: string): { readonly provider: string; readonly cluster: string }[] {
  if (name === 'Memory') return [{ provider: 'Memory', cluster: clusterId }];
  if (name !== 'Mock') return [];
  return ['mockAdapter1', 'mockAdapter2'].map((cluster) => ({ provider: 'Mock', cluster }));
}
