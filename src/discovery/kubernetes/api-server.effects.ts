import { fromCallback, fromPromise } from 'xstate';
import { apiServerMachine, type PingResult } from '../../../machines/discovery/kubernetes/api-server.machine.ts';
import { informerMachine, type SetOrder } from '../../../machines/discovery/kubernetes/informer.machine.ts';
import type {
  CheckReport,
  ListReport,
  RequestFailure,
  ResourceName,
  WatchStreamReport,
} from '../../../machines/discovery/kubernetes/kubernetes-protocol.ts';
import { messageOf } from '../../runtime/errors.ts';
import { ApiError, statusOf } from './api-failure.ts';
import { type ApiResource, apiVersionOf, customResourceDefinitions } from './api-resource.ts';
import type { ApiServer, KubernetesObject, ObjectSelection } from './api-server.ts';
import { type InformerRequests, informerWithEffects } from './informer.effects.ts';
import { SharesOfKinds } from './store/namespace-shares.ts';
import { type ObjectChange, type ObjectKey, ObjectStore } from './store/object-store.ts';
import { type RefilledKind, Refills } from './store/refills.ts';
import { WatchReading } from './store/watch-reading.ts';

export interface FollowedKind {
  readonly resource: ApiResource;
  readonly selection?: ObjectSelection;
  /** Default: the name of the resource. Two informers of one resource, for example for two object names, need different names. */
  readonly name?: ResourceName;
  /** Equivalent versions, requested if the server does not serve the preferred one. */
  readonly otherVersions?: readonly string[];
  readonly shouldKeep?: (key: ObjectKey) => boolean;
  /** Whether readers fetch objects themselves, and so may know one before its event arrives. */
  readonly isOnDemand?: boolean;
}

/** A kind whose initial list has not been passed to readers yet. */
export interface UnsyncedKind {
  readonly name: ResourceName;
  readonly reason?: string;
}

/** Receives changes of a kind after they are in the store. The kind is synced when the promise returned for a full set settles. */
export type StoreReader = (changes: readonly ObjectChange[]) => void | Promise<void>;

export interface InformerEffectsOptions {
  readonly server: ApiServer;
  readonly kinds: readonly FollowedKind[];
  readonly random: () => number;
  /** Monotonic clock in milliseconds. */
  readonly now: () => number;
  readonly onSynced?: () => void;
  /** Receives `undefined` when the server responds again. */
  readonly onLost?: (reason: string | undefined) => void;
  readonly onUnserved?: (resource: string, versions: readonly string[]) => void;
  readonly fault: (error: unknown) => void;
  /** Default: derived from the heap limit of this process. */
  readonly shares?: SharesOfKinds;
  /** Called when an object exceeds the limit of its namespace, so that only its name is kept. */
  readonly onRejected?: (kind: string, key: ObjectKey, reason: string) => void;
}

export interface InformerCharts {
  readonly server: typeof apiServerMachine;
  readonly informer: typeof informerMachine;
}

export interface EffectsOfServers {
  effectsOfServer(server: string): InformerEffects;
  effectsOfResource(resource: ResourceName): InformerEffects;
}

const maxPageObjects = 500;
/** The actual duration is random, five to ten minutes, so that watches do not end simultaneously. */
const minWatchSeconds = 300;

/** Not needed to stop a list, because `ApiServer` limits its time. */
const neverAbortedSignal = new AbortController().signal;

type ReportFailure = (report: { type: 'request.failed'; failure: RequestFailure; draw: number }) => void;

interface FollowedStore {
  readonly name: ResourceName;
  resources: readonly ApiResource[];
  readonly selection: ObjectSelection;
  readonly store: ObjectStore;
  readonly readers: StoreReader[];
  readonly firstSet: PromiseWithResolvers<void>;
  isHandedOver: boolean;
  reason: string | undefined;
}

export class InformerEffects {
  readonly #options: InformerEffectsOptions;
  readonly #kinds: ReadonlyMap<ResourceName, FollowedStore>;
  readonly #refilledOf: ReadonlyMap<FollowedStore, RefilledKind>;
  readonly #refills: Refills;

  readonly #requests: InformerRequests = {
    watch: (order, report) => this.#watch(order, report),
    list: (order, report) => this.#list(order, report),
    check: (resource, report) => this.#check(resource, report),
    handOver: (resource, isAbsent) => this.#handOver(resource, isAbsent),
  };

  constructor(options: InformerEffectsOptions) {
    this.#options = options;
    const { shares = new SharesOfKinds(), onRejected } = options;
    this.#kinds = new Map(
      options.kinds.map((kind) => followedStore(kind, shares, onRejected)).map((kind) => [kind.name, kind]),
    );
    this.#refilledOf = new Map([...this.#kinds.values()].map((kind) => [kind, this.#refilledKind(kind)]));
    this.#refills = new Refills([...this.#refilledOf.values()]);
  }

  refill(resource: ApiResource | ResourceName, namespace: string): void {
    this.#refills.request(this.#refilledOf.get(this.#kindOf(nameOf(resource)))!, namespace);
  }

  dropNamespace(resource: ApiResource | ResourceName, namespace: string): void {
    const kind = this.#kindOf(nameOf(resource));
    const changes = kind.store.dropNamespace(namespace);
    if (changes.length > 0) this.#notifyReaders(kind, changes);
  }

  #refilledKind(kind: FollowedStore): RefilledKind {
    const list = async (namespace: string, onItem: (object: KubernetesObject) => void): Promise<void> => {
      let next: string | undefined;
      do {
        const options = { ...kind.selection, namespace, limit: maxPageObjects, ...(next && { continue: next }) };
        const page = await tryServedVersions(kind, (resource) =>
          this.#options.server.list(resource, options, neverAbortedSignal, onItem),
        );
        next = page.continue;
      } while (next !== undefined);
    };
    return { store: kind.store, list, notifyReaders: (changes) => this.#notifyReaders(kind, changes) };
  }

  *refusedObjects(): Iterable<{ readonly kind: string; readonly namespace: string; readonly count: number }> {
    for (const { resources, store } of this.#kinds.values()) {
      for (const [namespace, count] of store.refusedCounts) yield { kind: resources[0]!.kind, namespace, count };
    }
  }

  get resources(): ResourceName[] {
    return [...this.#kinds.keys()];
  }

  /** Empty until the initial list is complete. */
  storeOf(resource: ApiResource | ResourceName): ObjectStore {
    return this.#kindOf(nameOf(resource)).store;
  }

  servedResource(resource: ApiResource | ResourceName): ApiResource {
    return this.#kindOf(nameOf(resource)).resources[0]!;
  }

  /** Call before the chart starts, so that the reader receives all changes. Readers are called in the order of these calls. */
  addReader(resource: ApiResource | ResourceName, reader: StoreReader): void {
    this.#kindOf(nameOf(resource)).readers.push(reader);
  }

  waitForFirstSet(resource: ApiResource | ResourceName): Promise<void> {
    return this.#kindOf(nameOf(resource)).firstSet.promise;
  }

  get unsyncedKinds(): readonly UnsyncedKind[] {
    const kinds = [...this.#kinds.values()].filter(({ isHandedOver }) => !isHandedOver);
    return kinds.map(({ name, reason }) => ({ name, ...(reason !== undefined && { reason }) }));
  }

  machine(charts?: InformerCharts): typeof apiServerMachine {
    return InformerEffects.machineOf({ effectsOfServer: () => this, effectsOfResource: () => this }, charts);
  }

  static machineOf(
    { effectsOfServer, effectsOfResource }: EffectsOfServers,
    charts: InformerCharts = { server: apiServerMachine, informer: informerMachine },
  ): typeof apiServerMachine {
    const informer = informerWithEffects((resource) => effectsOfResource(resource).#requests, charts.informer);
    return charts.server.provide({
      actors: {
        informer,
        ping: fromPromise<PingResult, { server: string }>(({ input, signal }) =>
          effectsOfServer(input.server).#ping(signal),
        ),
        watchDefinitions: fromCallback<{ type: never }, { resources: ResourceName[] }>(({ input, sendBack }) =>
          effectsOfResource(input.resources[0] ?? '').#watchDefinitions((resource, defined) =>
            sendBack({ type: 'definition.changed', resource, defined }),
          ),
        ),
      },
      actions: {
        reconnect: (_, { server }) => effectsOfServer(server).#options.server.reconnect(),
        publishSynced: (_, { server }) => effectsOfServer(server).#options.onSynced?.(),
        publishUnreachable: (_, { server, reason }) => effectsOfServer(server).#options.onLost?.(reason),
        publishReachable: (_, { server }) => effectsOfServer(server).#options.onLost?.(undefined),
      },
    });
  }

  #watch(
    { resource: name, initial, basis, version }: SetOrder,
    notify: (report: WatchStreamReport) => void,
  ): () => void {
    const kind = this.#kindOf(name);
    const options = {
      ...kind.selection,
      timeoutSeconds: Math.round(minWatchSeconds * (1 + this.#options.random())),
      ...(initial && { sendInitialEvents: true }),
      ...((!initial || basis === 'not older') && { resourceVersion: version }),
    };
    return this.#startWork(kind, notify, async (signal) => {
      const watchReading = new WatchReading(kind.store, initial, this.#options.now, (report, changes) => {
        // Readers are called even after an abort, because the changes are already in the store.
        if (changes.length > 0) this.#notifyReaders(kind, changes);
        if (!signal.aborted) notify(report);
      });
      await tryServedVersions(kind, (resource) =>
        this.#options.server.watch(resource, options, watchReading.handleEvent, signal),
      );
      watchReading.flush();
      if (watchReading.failure !== undefined) throw new ApiError(watchReading.failure);
      if (!signal.aborted) notify({ type: 'watch.ended' });
    });
  }

  #list({ resource: name, basis, version }: SetOrder, notify: (report: ListReport) => void): () => void {
    const kind = this.#kindOf(name);
    const { selection, store } = kind;
    return this.#startWork(kind, notify, async (signal) => {
      store.beginSet();
      const options = {
        ...selection,
        ...(basis === 'not older' && { resourceVersion: version }),
        ...(basis === 'newest' && { limit: maxPageObjects }),
      };
      let next: string | undefined;
      for (;;) {
        const pageOptions = { ...options, ...(next !== undefined && { continue: next }) };
        let objects = 0;
        const collect = (item: KubernetesObject): void => {
          if (!signal.aborted) objects = store.collect(item);
        };
        const page = await tryServedVersions(kind, (resource) =>
          this.#options.server.list(resource, pageOptions, signal, collect),
        );
        if (signal.aborted) return;
        notify({ type: 'page.received', objects });
        next = page.continue;
        if (next === undefined) return notify({ type: 'list.ended', version: page.resourceVersion });
      }
    });
  }

  #check(name: ResourceName, notify: (report: CheckReport) => void): () => void {
    const kind = this.#kindOf(name);
    return this.#startWork(kind, notify, async (signal) => {
      const options = { ...kind.selection, metadataOnly: true, limit: 1 };
      const { resourceVersion } = await tryServedVersions(kind, (resource) =>
        this.#options.server.list(resource, options, signal),
      );
      if (!signal.aborted) notify({ type: 'version.received', version: resourceVersion });
    });
  }

  async #handOver(name: ResourceName, isAbsent: boolean): Promise<{ objects: number }> {
    const kind = this.#kindOf(name);
    const { store, readers } = kind;
    const changes = isAbsent ? store.clear() : store.activateCollected();
    // Calls all readers synchronously, so that later watch events reach them after these changes.
    await Promise.all(readers.map((reader) => this.#notifyReader(reader, changes)));
    kind.isHandedOver = true;
    kind.reason = undefined;
    kind.firstSet.resolve();
    return { objects: store.size };
  }

  async #ping(signal: AbortSignal): Promise<PingResult> {
    try {
      await this.#options.server.ping(signal);
      return { outcome: 'answered' };
    } catch (error) {
      return { outcome: 'failed', reason: messageOf(error), draw: this.#options.random() };
    }
  }

  #watchDefinitions(notify: (resource: ResourceName, defined: boolean) => void): () => void {
    const definitions = this.#kinds.get(nameOf(customResourceDefinitions));
    const reader: StoreReader = (changes) => {
      for (const { name, resources } of this.#kinds.values()) {
        const [resource] = resources as [ApiResource];
        const lastChange = changes.findLast(({ key }) => key === `/${resource.plural}.${resource.group}`);
        if (lastChange !== undefined) notify(name, lastChange.event !== 'delete');
      }
    };
    definitions?.readers.push(reader);
    return () => void definitions?.readers.splice(definitions.readers.indexOf(reader), 1);
  }

  #notifyReaders({ readers }: FollowedStore, changes: readonly ObjectChange[]): void {
    for (const reader of readers) void this.#notifyReader(reader, changes);
    this.#refills.checkDue();
  }

  async #notifyReader(reader: StoreReader, changes: readonly ObjectChange[]): Promise<void> {
    try {
      await reader(changes);
    } catch (error) {
      this.#options.fault(error);
    }
  }

  /**
   * Reports a failure unless the work was aborted.
   * @returns a function that aborts the work
   */
  #startWork(kind: FollowedStore, notify: ReportFailure, task: (signal: AbortSignal) => Promise<void>): () => void {
    const abort = new AbortController();
    void this.#runReporting(kind, abort.signal, notify, task);
    return () => abort.abort();
  }

  async #runReporting(
    kind: FollowedStore,
    signal: AbortSignal,
    notify: ReportFailure,
    task: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    try {
      await task(signal);
    } catch (error) {
      if (signal.aborted) return;
      const failure: RequestFailure =
        error instanceof ApiError
          ? { ...error.failure, message: error.message }
          : { kind: 'invalid', message: messageOf(error) };
      kind.reason = failure.message;
      if (statusOf(error) === 404) this.#reportUnserved(kind);
      notify({ type: 'request.failed', failure, draw: this.#options.random() });
    }
  }

  /** Reports only resources with a CRD, because a missing CRD is not a fault. */
  #reportUnserved({ resources }: FollowedStore): void {
    const { plural, group } = resources[0]!;
    const definition = `${plural}.${group}`;
    const isDefined = this.#kinds.get(nameOf(customResourceDefinitions))?.store.get(`/${definition}`) !== undefined;
    if (isDefined) this.#options.onUnserved?.(definition, resources.map(({ version }) => version).sort());
  }

  #kindOf(name: ResourceName): FollowedStore {
    const kind = this.#kinds.get(name);
    if (kind === undefined) throw new Error(`${name} is not followed`);
    return kind;
  }
}

function followedStore(
  { resource, selection = {}, name = nameOf(resource), otherVersions = [], shouldKeep, isOnDemand }: FollowedKind,
  shares: SharesOfKinds,
  onRefused: InformerEffectsOptions['onRejected'],
): FollowedStore {
  // Objects in a selected namespace belong to the control plane and are not limited.
  const isLimited = selection.namespace === undefined;
  const store = new ObjectStore({
    ...(isLimited && { shares: shares.sharesOfKind(resource.kind) }),
    ...(onRefused && { onRejected: (key, reason) => onRefused(resource.kind, key, reason) }),
    ...(shouldKeep && { shouldKeep }),
    ...(isOnDemand && { isOnDemand }),
  });
  return {
    ...{ name, selection, store, readers: [], isHandedOver: false, reason: undefined },
    resources: [resource, ...otherVersions.map((version) => ({ ...resource, version }))],
    firstSet: Promise.withResolvers(),
  };
}

/** Sends a request in the last known version, then in each other version that the server may serve. */
async function tryServedVersions<Result>(
  kind: FollowedStore,
  send: (resource: ApiResource) => Promise<Result>,
): Promise<Result> {
  for (let remainingResources = kind.resources.length; ; ) {
    const [resource, ...otherResources] = kind.resources as [ApiResource, ...ApiResource[]];
    try {
      return await send(resource);
    } catch (error) {
      if (statusOf(error) !== 404) throw error;
      kind.resources = [...otherResources, resource];
      if (--remainingResources === 0) throw error;
    }
  }
}

export function nameOf(resource: ApiResource | ResourceName): ResourceName {
  return typeof resource === 'string' ? resource : `${apiVersionOf(resource)}/${resource.plural}`;
}
