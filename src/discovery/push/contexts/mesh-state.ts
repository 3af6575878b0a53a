/** The statecharts decide when configuration, settings, services and push context change, and know only their versions. */
import type { ServicesReading } from '../../../../machines/discovery/registry/service-registry.setup.ts';
import { type Config, configKeyText, parseConfigKey } from '../../../model/config/config.ts';
import { needsPush } from '../../../model/config/config-changes.ts';
import type { ConfigSet } from '../../../model/config/config-set.ts';
import type { Problem } from '../../../model/config/problem.ts';
import { defaultFeatures, type Features } from '../../../model/mesh/features.ts';
import type { MeshConfig } from '../../../model/mesh/mesh-config.ts';
import { buildPushContextInSteps } from '../../../model/push-context/build-push-context.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import {
  defaultRegistryOptions,
  type RegistryOptions,
  type ServiceRegistry,
  serviceKinds,
} from '../../../model/services/service-registry.ts';
import { runToEnd, SerialQueue, type Steps, Turns } from '../../../runtime/turns.ts';
import type { SettingsFiles } from '../../config/files/settings-files.ts';
import { ConfigSnapshot } from '../../config/snapshots/config-snapshot.ts';
import type { FollowedObjects } from '../../registry/followed-objects.ts';
import type { ChangedConfigObject } from '../../registry/mesh-registries.ts';
import { MeshRegistries } from '../../registry/mesh-registries.ts';
import type { RegistryObserver } from '../../registry/registry-observer.ts';
import type { ServiceObjectReport } from '../../registry/service-objects.ts';
import { ServiceComputations } from './service-computations.ts';

export interface MeshStateOptions {
  readonly settings: SettingsFiles;
  readonly meshConfigs?: {
    readonly snapshot: ConfigSnapshot;
    readonly unreadable?: ReadonlyMap<string, string>;
    readonly limitedCount?: number;
    readonly translationProblems?: Iterable<Problem>;
  };
  readonly domain: string;
  readonly clusterId: string;
  readonly registries?: readonly string[];
  readonly registryOptions?: Partial<RegistryOptions>;
  readonly features?: Features;
  readonly observer?: RegistryObserver;
  /** Objects of the cluster that only the registry reads. Absent without a Kubernetes registry. */
  readonly cluster?: FollowedObjects;
  readonly maxEndpointsPerNamespace?: number;
  readonly keySets?: { resolve(set: ConfigSet): ConfigSet };
}

export interface ContextPublication {
  readonly context: PushContext;
  readonly previous: PushContext | undefined;
  /** Whether anything may differ, including objects that are not in `changedKeys`. */
  readonly forced: boolean;
  readonly changedKeys: ReadonlySet<string>;
}

export interface Publication extends ContextPublication {
  readonly configs: ConfigSnapshot;
  /** Like `configs`, but for a RequestAuthentication that waits for keys, its previous version. */
  readonly appliedConfigs: ConfigSnapshot;
  /** Empty in the first publication. */
  readonly objects: readonly string[];
}

export interface ContextOrder {
  readonly forced: boolean;
  /** Ignored if `forced`. */
  readonly changedKeys: readonly string[];
}

interface NextObjects {
  readonly appliedConfigs: ConfigSnapshot;
  readonly differingKeys: readonly string[];
  readonly objects: readonly string[];
}

/** A kind's list is built on first access. */
function withWorkloads(set: ConfigSet, pods: readonly Config[], nodes: readonly Config[]): ConfigSet {
  const workloads = { Pod: { value: pods, enumerable: true }, Node: { value: nodes, enumerable: true } };
  return Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(set), ...workloads }) as ConfigSet;
}

/** Kinds whose keys are not pushed, because pushes contain the keys of services instead. */
const serviceSourceKinds: ReadonlySet<string> = new Set(serviceKinds);

export class MeshState {
  readonly settings: SettingsFiles;
  readonly registries: MeshRegistries;
  readonly #options: MeshStateOptions;
  readonly #listeners: ((published: Publication) => void)[] = [];
  readonly #gatewayListeners = new Set<() => void>();
  readonly #reportListeners: ((report: ServiceObjectReport) => void)[] = [];
  #cachedObjects:
    | { readonly configSet: ConfigSet; readonly pods: unknown; readonly nodes: unknown; readonly set: ConfigSet }
    | undefined;
  /** Serializes builds, because their input must not change during a build. */
  readonly #builds = new SerialQueue();
  readonly #computations = new ServiceComputations();
  #hasApplied = false;
  #context: PushContext | undefined;
  #contextConfigs: ConfigSnapshot | undefined;
  #counter = 0;

  constructor(options: MeshStateOptions) {
    this.#options = options;
    this.settings = options.settings;
    this.registries = new MeshRegistries(this.registrySettings, {
      names: options.registries ?? [],
      ...{ observer: options.observer, cluster: options.cluster },
      maxEndpointsPerNamespace: options.maxEndpointsPerNamespace,
      gatewaysResolved: () => {
        for (const listener of this.#gatewayListeners) listener();
      },
    });
  }

  get configs(): ConfigSnapshot {
    return this.#options.meshConfigs?.snapshot ?? ConfigSnapshot.empty;
  }

  /** Includes Pods and Nodes that only the registry reads. The set is the same object until a change. */
  get objects(): ConfigSet {
    const { set } = this.configs;
    if (this.#options.cluster === undefined) return set;
    const { pods, nodes } = this.registries.workloads;
    if (
      this.#cachedObjects?.configSet !== set ||
      this.#cachedObjects.pods !== pods ||
      this.#cachedObjects.nodes !== nodes
    )
      this.#cachedObjects = { configSet: set, pods, nodes, set: withWorkloads(set, pods, nodes) };
    return this.#cachedObjects.set;
  }

  get allObjects(): readonly Config[] {
    return [...this.configs.byKey.values(), ...this.registries.objects.clusterObjects()];
  }

  get limitedCount(): number {
    return (this.#options.meshConfigs?.limitedCount ?? 0) + this.registries.objects.limitedCount;
  }

  get translationProblems(): Iterable<Problem> {
    return this.#options.meshConfigs?.translationProblems ?? [];
  }

  get unreadable(): ReadonlyMap<string, string> {
    return this.#options.meshConfigs?.unreadable ?? new Map();
  }

  get registry(): ServiceRegistry {
    return this.registries.snapshot;
  }

  get context(): PushContext | undefined {
    return this.#context;
  }

  get mesh(): MeshConfig {
    return this.settings.mesh;
  }

  /** The listener is called before proxies are notified. */
  onPublished(listener: (published: Publication) => void): void {
    this.#listeners.push(listener);
  }

  /** The listener is called after {@link computeServices}. */
  onReported(listener: (report: ServiceObjectReport) => void): void {
    this.#reportListeners.push(listener);
  }

  /** The listener is called when the host name of a gateway resolves to new addresses. {@link computeServices} then reports the change. */
  onGatewaysResolved(listener: () => void): () => void {
    this.#gatewayListeners.add(listener);
    return () => void this.#gatewayListeners.delete(listener);
  }

  /**
   * @param changes if absent, all objects may have changed
   * @param registries `Provider/cluster` of existing registries; if absent, none is removed
   */
  computeServices(changes?: readonly ChangedConfigObject[], registries?: readonly string[]): ServicesReading {
    return runToEnd(this.#computeServicesInSteps(changes, registries));
  }

  /**
   * Waits for the running build.
   *
   * @param signal aborts; the next call then reports these changes too
   */
  computeServicesInTurns(
    changes?: readonly ChangedConfigObject[],
    registries?: readonly string[],
    signal?: AbortSignal,
  ): Promise<ServicesReading> {
    return this.#computations.run(
      this.#builds.run(() => new Turns().runSteps(this.#computeServicesInSteps(changes, registries, signal))),
    );
  }

  *#computeServicesInSteps(
    changes?: readonly ChangedConfigObject[],
    registries?: readonly string[],
    signal?: AbortSignal,
  ): Steps<ServicesReading> {
    const { byKey } = this.configs;
    try {
      if (registries !== undefined) yield* this.registries.removeOtherRegistriesInSteps(registries);
      yield* this.registries.configureInSteps(this.registrySettings);
      if (this.#hasApplied && changes !== undefined) yield* this.registries.applyInSteps(changes, byKey);
      else yield* this.registries.loadInSteps(byKey);
      this.#hasApplied = true;
    } catch (error) {
      // A failed change may have been applied partially.
      this.#hasApplied = false;
      yield* this.registries.rebuildInSteps();
      throw error;
    }
    signal?.throwIfAborted();
    const { forced, services, endpoints, proxies, reasons } = this.registries.takePendingPush();
    const report = this.registries.objects.drainReport();
    for (const listener of this.#reportListeners) listener(report);
    return {
      services: this.registry.services.length,
      endpoints: this.registries.endpointCount,
      changedServices: [...services],
      changedEndpoints: [...endpoints],
      changedProxies: [...proxies],
      forced,
      reasons: Object.fromEntries(reasons),
      ...(report.problems.length > 0 && { problems: [...report.problems] }),
      ...(report.recovered.length > 0 && { recovered: [...report.recovered] }),
    };
  }

  /**
   * The published changes include objects and services that changed since the order. Otherwise, a later order could contain an object that no longer
   * differs, and proxies would not receive the change.
   */
  publishContext(order: ContextOrder): PushContext {
    return runToEnd(this.#publishContextInSteps(order));
  }

  /** Waits until services reflect all earlier changes. */
  async publishContextInTurns(order: ContextOrder): Promise<PushContext> {
    await this.#computations.waitUntilIdle();
    return await this.#builds.run(() => new Turns().runSteps(this.#publishContextInSteps(order)));
  }

  *#publishContextInSteps({ forced, changedKeys }: ContextOrder): Steps<PushContext> {
    const previous = this.#context;
    const { mesh } = this.settings;
    // Services depend on mesh settings such as the trust domain and the default visibility.
    const isFullRebuild = forced || previous?.mesh !== mesh;
    if (isFullRebuild) yield* this.registries.configureInSteps(this.registrySettings);
    const { services, endpoints, workloads, gateways } = this.registry;
    const { registries, features } = this.#options;
    const { configs } = this;
    const { appliedConfigs, differingKeys, objects } = yield* this.#nextObjects(
      configs,
      isFullRebuild ? undefined : new Set(changedKeys),
    );
    // Shared resources do not depend on a single proxy's workload.
    const namedKeys = changedKeys.filter((key) => !key.startsWith('Proxy/'));
    const sharedKeys = [...new Set([...namedKeys, ...differingKeys, ...this.registries.unpublishedKeys])];
    const context = yield* buildPushContextInSteps(
      {
        version: `${new Date().toISOString()}/${++this.#counter}`,
        mesh,
        domain: this.#options.domain,
        ...(features && { features }),
        ...(registries && { kubernetes: registries.includes('Kubernetes') }),
        configs: this.#options.keySets?.resolve(appliedConfigs.set) ?? appliedConfigs.set,
        ...{ services, endpoints, workloads, gateways },
      },
      forced || previous === undefined ? undefined : { context: previous, changedKeys: sharedKeys.map(parseConfigKey) },
    );
    this.#context = context;
    this.#contextConfigs = appliedConfigs;
    this.registries.onPublished();
    const renamedKeys = context.renamedConfigKeys.map(configKeyText);
    const publication = {
      context,
      previous,
      forced: isFullRebuild,
      changedKeys: new Set([...sharedKeys, ...renamedKeys]),
      ...{ configs, appliedConfigs, objects },
    };
    for (const listener of this.#listeners) listener(publication);
    return context;
  }

  /**
   * A RequestAuthentication that is not in the order keeps its previous version, because its push waits for the keys of its issuers.
   *
   * @param namedKeys keys of the order; `undefined` if anything may differ
   */
  *#nextObjects(configs: ConfigSnapshot, namedKeys: ReadonlySet<string> | undefined): Steps<NextObjects> {
    const previousConfigs = this.#contextConfigs;
    const differingKeys: string[] = [];
    const objects: string[] = [];
    if (previousConfigs === undefined) return { appliedConfigs: configs, differingKeys, objects };
    const waitingConfigs = new Map<string, Config | undefined>();
    for (const key of configs.differingKeys(previousConfigs)) {
      yield;
      objects.push(key);
      const kind = key.slice(0, key.indexOf('/'));
      if (namedKeys === undefined || namedKeys.has(key) || serviceSourceKinds.has(kind)) continue;
      const [previousObject, current] = [previousConfigs.byKey.get(key), configs.byKey.get(key)];
      if (previousObject !== undefined && current !== undefined && !needsPush(previousObject, current)) continue;
      if (kind === 'RequestAuthentication') waitingConfigs.set(key, previousObject);
      else differingKeys.push(key);
    }
    return {
      appliedConfigs: waitingConfigs.size === 0 ? configs : yield* configs.editInSteps(waitingConfigs),
      differingKeys,
      objects,
    };
  }

  get registrySettings(): RegistryOptions {
    const { domain, clusterId, registryOptions, features = defaultFeatures } = this.#options;
    const { trustDomain, defaultServiceExportTo, exportingNamespaces, rootNamespace, discoverySelectors } = this.mesh;
    const { networks } = this.settings;
    return {
      ...defaultRegistryOptions,
      ...registryOptions,
      // Endpoint generation decides for each service whether unhealthy ones are sent.
      sendUnhealthy: features.sendUnhealthy || features.autoSendUnhealthy,
      persistentSessionLabel: features.persistentSessionLabel,
      ...{ domain, clusterId, trustDomain, defaultServiceExportTo, discoverySelectors, networks },
      ...{ exportingNamespaces, rootNamespace },
    };
  }
}
