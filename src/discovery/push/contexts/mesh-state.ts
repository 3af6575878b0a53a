/**
 * What the control plane knows at one moment: settings, objects, services, and the push context made of them. The
 * statecharts say when each of these moves on; they know them by version only.
 */
import type { ServicesReading } from '../../../../machines/discovery/registry/service-registry.setup.ts';
import { type Config, configKeyText, parseConfigKey } from '../../../model/config/config.ts';
import { needsPush } from '../../../model/config/config-changes.ts';
import type { ConfigSet } from '../../../model/config/config-set.ts';
import type { Problem } from '../../../model/config/problem.ts';
import { defaultFeatures, type Features } from '../../../model/mesh/features.ts';
import type { MeshConfig } from '../../../model/mesh/mesh-config.ts';
import { buildingPushContext } from '../../../model/push-context/build-push-context.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import {
  defaultRegistryOptions,
  type RegistryOptions,
  type ServiceRegistry,
  serviceKinds,
} from '../../../model/services/service-registry.ts';
import { atOnce, OneByOne, type Steps, Turns } from '../../../runtime/turns.ts';
import type { SettingsFiles } from '../../config/files/settings-files.ts';
import { ConfigSnapshot } from '../../config/snapshots/config-snapshot.ts';
import type { FollowedObjects } from '../../registry/followed-objects.ts';
import type { ChangedObject } from '../../registry/mesh-registries.ts';
import { MeshRegistries } from '../../registry/mesh-registries.ts';
import type { RegistryObserver } from '../../registry/registry-observer.ts';
import type { ObjectReport } from '../../registry/service-objects.ts';
import { ServiceComputations } from './service-computations.ts';

export interface MeshStateOptions {
  readonly settings: SettingsFiles;
  /** Absent: nothing is configured. */
  readonly directory?: {
    readonly snapshot: ConfigSnapshot;
    readonly unreadable?: ReadonlyMap<string, string>;
    readonly limitedCount?: number;
    readonly translationProblems?: Iterable<Problem>;
  };
  /** `--domain`. */
  readonly domain: string;
  /** `--clusterID`. */
  readonly clusterId: string;
  /** Words of `--registries`: `Mock` and `Memory` make registries of their own. */
  readonly registries?: readonly string[];
  /** What the environment says of registries; the rest is as without a flag. */
  readonly registryOptions?: Partial<RegistryOptions>;
  /** What the environment says of what is generated; absent: as without any variable. */
  readonly features?: Features;
  readonly observer?: RegistryObserver;
  /** What only the registry reads of the followed cluster; absent: there is none, or no registry of it. */
  readonly cluster?: FollowedObjects;
  /** As for `ServiceObjects`. */
  readonly maxEndpointsPerNamespace?: number;
  /** Puts keys that were fetched into the objects that ask for them; absent: none are fetched. */
  readonly keySets?: { resolve(set: ConfigSet): ConfigSet };
}

/** A context, and what it was built for. */
export interface PublishedContext {
  readonly context: PushContext;
  /** The one before. */
  readonly previous: PushContext | undefined;
  /** Everything may differ from the one before. */
  readonly forced: boolean;
  /** Keys of what differs from the one before. */
  readonly changed: ReadonlySet<string>;
}

export interface Publication extends PublishedContext {
  /** The objects that it was made from. */
  readonly configs: ConfigSnapshot;
  /** The same, except that a RequestAuthentication that waits for keys is the previous one. */
  readonly shown: ConfigSnapshot;
  /** Keys of objects that differ from the previous publication; empty for the first one. */
  readonly objects: readonly string[];
}

export interface ContextOrder {
  readonly forced: boolean;
  /** Keys of everything that may differ from the last context; without effect when `forced`. */
  readonly changed: readonly string[];
}

interface ShownObjects {
  readonly shown: ConfigSnapshot;
  /** Keys of objects that differ from the previous context and that the order does not name. */
  readonly differing: readonly string[];
  /** Keys of all objects that differ. */
  readonly objects: readonly string[];
}

/** A kind's list is made when it is read. */
function withWorkloads(set: ConfigSet, pods: readonly Config[], nodes: readonly Config[]): ConfigSet {
  const workloads = { Pod: { value: pods, enumerable: true }, Node: { value: nodes, enumerable: true } };
  return Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(set), ...workloads }) as ConfigSet;
}

/** Kinds that services are computed from: a push names the services. */
const kindsOfServices: ReadonlySet<string> = new Set(serviceKinds);

export class MeshState {
  readonly settings: SettingsFiles;
  /** Whatever services come from. */
  readonly registries: MeshRegistries;
  readonly #options: MeshStateOptions;
  readonly #listeners: ((published: Publication) => void)[] = [];
  readonly #gatewayListeners = new Set<() => void>();
  readonly #reportListeners: ((report: ObjectReport) => void)[] = [];
  #objects:
    | { readonly of: ConfigSet; readonly pods: unknown; readonly nodes: unknown; readonly set: ConfigSet }
    | undefined;
  /** Services and contexts are made of one another: while one is made in steps, nothing that it is made of changes. */
  readonly #making = new OneByOne();
  readonly #computations = new ServiceComputations();
  /** The registries were told of all objects once. */
  #hasApplied = false;
  #context: PushContext | undefined;
  /** Objects of {@link #context}. */
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

  /** The current objects. */
  get configs(): ConfigSnapshot {
    return this.#options.directory?.snapshot ?? ConfigSnapshot.empty;
  }

  /** The current objects by kind, with the Pods and Nodes that only the registry reads. The same set until one changes. */
  get objects(): ConfigSet {
    const { set } = this.configs;
    if (this.#options.cluster === undefined) return set;
    const { pods, nodes } = this.registries.workloads;
    if (this.#objects?.of !== set || this.#objects.pods !== pods || this.#objects.nodes !== nodes)
      this.#objects = { of: set, pods, nodes, set: withWorkloads(set, pods, nodes) };
    return this.#objects.set;
  }

  /** All current objects: those of {@link configs}, and those that only the registry reads. */
  get allObjects(): readonly Config[] {
    return [...this.configs.byKey.values(), ...this.registries.objects.ofCluster()];
  }

  /** How many objects are beyond a limit of their namespaces. */
  get limitedCount(): number {
    return (this.#options.directory?.limitedCount ?? 0) + this.registries.objects.limitedCount;
  }

  /** What of the Gateway API's objects has no effect, and why. */
  get translationProblems(): Iterable<Problem> {
    return this.#options.directory?.translationProblems ?? [];
  }

  /** Files of configuration that cannot be read, with the reason. */
  get unreadable(): ReadonlyMap<string, string> {
    return this.#options.directory?.unreadable ?? new Map();
  }

  /** What the registries know at this moment. */
  get registry(): ServiceRegistry {
    return this.registries.snapshot;
  }

  /** What proxies are served from; absent until the first one was built. */
  get context(): PushContext | undefined {
    return this.#context;
  }

  get mesh(): MeshConfig {
    return this.settings.mesh;
  }

  /** Called with each new context before anybody is told of it. */
  onPublished(listener: (published: Publication) => void): void {
    this.#listeners.push(listener);
  }

  /** Calls the listener with what happened to objects of services, after {@link computeServices}. */
  onReported(listener: (report: ObjectReport) => void): void {
    this.#reportListeners.push(listener);
  }

  /** Called when names of gateways have other addresses: {@link computeServices} then says so. Returns how to end that. */
  onGatewaysResolved(listener: () => void): () => void {
    this.#gatewayListeners.add(listener);
    return () => void this.#gatewayListeners.delete(listener);
  }

  /**
   * Brings services and endpoints to the objects in force, and says what changed since the last time.
   *
   * @param changes objects that changed since; absent: whichever did
   * @param registries `Provider/cluster` of those that there are; absent: none is taken away
   */
  computeServices(changes?: readonly ChangedObject[], registries?: readonly string[]): ServicesReading {
    return atOnce(this.#computingServices(changes, registries));
  }

  /**
   * The same with rests, after whatever is being made already.
   *
   * @param signal nobody hears the answer any more: what it would have said is said by the next
   */
  computeServicesInTurns(
    changes?: readonly ChangedObject[],
    registries?: readonly string[],
    signal?: AbortSignal,
  ): Promise<ServicesReading> {
    return this.#computations.run(
      this.#making.do(() => new Turns().through(this.#computingServices(changes, registries, signal))),
    );
  }

  *#computingServices(
    changes?: readonly ChangedObject[],
    registries?: readonly string[],
    signal?: AbortSignal,
  ): Steps<ServicesReading> {
    const { byKey } = this.configs;
    try {
      if (registries !== undefined) yield* this.registries.keepingOnly(registries);
      yield* this.registries.configuring(this.registrySettings);
      if (this.#hasApplied && changes !== undefined) yield* this.registries.applying(changes, byKey);
      else yield* this.registries.loading(byKey);
      this.#hasApplied = true;
    } catch (error) {
      // Half of a change may be in them.
      this.#hasApplied = false;
      yield* this.registries.remaking();
      throw error;
    }
    signal?.throwIfAborted();
    const { forced, services, endpoints, proxies, reasons } = this.registries.take();
    const report = this.registries.objects.takeReport();
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
   * Builds the context of the moment at which it begins, and publishes it. Objects and services may have changed since the order was
   * given: the context names them, too. Otherwise a later order names an object that is in neither of the contexts before and after
   * it, and no proxy that had it is updated.
   */
  publishContext(order: ContextOrder): PushContext {
    return atOnce(this.#publishingContext(order));
  }

  /** The same with rests, after the services reflect the objects that have changed before this call. */
  async publishContextInTurns(order: ContextOrder): Promise<PushContext> {
    await this.#computations.settled();
    return await this.#making.do(() => new Turns().through(this.#publishingContext(order)));
  }

  *#publishingContext({ forced, changed }: ContextOrder): Steps<PushContext> {
    const previous = this.#context;
    const { mesh } = this.settings;
    // Services depend on mesh settings: on the trust domain, on who sees them.
    const everything = forced || previous?.mesh !== mesh;
    if (everything) yield* this.registries.configuring(this.registrySettings);
    const { services, endpoints, workloads, gateways } = this.registry;
    const { registries, features } = this.#options;
    const { configs } = this;
    const { shown, differing, objects } = yield* this.#objectsToShow(
      configs,
      everything ? undefined : new Set(changed),
    );
    // What is known of one proxy's workload is in no resource that it shares with others.
    const named = changed.filter((key) => !key.startsWith('Proxy/'));
    const shared = [...new Set([...named, ...differing, ...this.registries.unpublished])];
    const context = yield* buildingPushContext(
      {
        version: `${new Date().toISOString()}/${++this.#counter}`,
        mesh,
        domain: this.#options.domain,
        ...(features && { features }),
        ...(registries && { kubernetes: registries.includes('Kubernetes') }),
        configs: this.#options.keySets?.resolve(shown.set) ?? shown.set,
        ...{ services, endpoints, workloads, gateways },
      },
      forced || previous === undefined ? undefined : { context: previous, changed: shared.map(parseConfigKey) },
    );
    this.#context = context;
    this.#contextConfigs = shown;
    this.registries.published();
    const renamed = context.renamed.map(configKeyText);
    const published = {
      context,
      previous,
      forced: everything,
      changed: new Set([...shared, ...renamed]),
      ...{ configs, shown, objects },
    };
    for (const listener of this.#listeners) listener(published);
    return context;
  }

  /**
   * The objects for the next context, and keys of those that differ from the previous one. A RequestAuthentication that the order does
   * not name stays as it was: its push waits for the keys of its issuers.
   *
   * @param named keys of the order; `undefined`: everything may differ
   */
  *#objectsToShow(configs: ConfigSnapshot, named: ReadonlySet<string> | undefined): Steps<ShownObjects> {
    const before = this.#contextConfigs;
    const differing: string[] = [];
    const objects: string[] = [];
    if (before === undefined) return { shown: configs, differing, objects };
    const waiting = new Map<string, Config | undefined>();
    for (const key of configs.differingKeys(before)) {
      yield;
      objects.push(key);
      const kind = key.slice(0, key.indexOf('/'));
      if (named === undefined || named.has(key) || kindsOfServices.has(kind)) continue;
      const [old, current] = [before.byKey.get(key), configs.byKey.get(key)];
      if (old !== undefined && current !== undefined && !needsPush(old, current)) continue;
      if (kind === 'RequestAuthentication') waiting.set(key, old);
      else differing.push(key);
    }
    return { shown: waiting.size === 0 ? configs : yield* configs.editing(waiting), differing, objects };
  }

  /** What registries are told beside their objects. */
  get registrySettings(): RegistryOptions {
    const { domain, clusterId, registryOptions, features = defaultFeatures } = this.#options;
    const { trustDomain, defaultServiceExportTo, exportingNamespaces, rootNamespace, discoverySelectors } = this.mesh;
    const { networks } = this.settings;
    return {
      ...defaultRegistryOptions,
      ...registryOptions,
      // Whether they are sent of a service is decided when they are; here it is whether anybody could see them.
      sendUnhealthy: features.sendUnhealthy || features.autoSendUnhealthy,
      persistentSessionLabel: features.persistentSessionLabel,
      ...{ domain, clusterId, trustDomain, defaultServiceExportTo, discoverySelectors, networks },
      ...{ exportingNamespaces, rootNamespace },
    };
  }
}
