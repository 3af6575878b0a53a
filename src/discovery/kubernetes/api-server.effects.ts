/** What the charts `api-server` and `informer` have done: requests go to the port, what comes goes into a store of each kind. */
import { fromCallback, fromPromise } from 'xstate';
import { apiServerMachine, type PingAnswer } from '../../../machines/discovery/kubernetes/api-server.machine.ts';
import { informerMachine, type SetOrder } from '../../../machines/discovery/kubernetes/informer.machine.ts';
import type {
  CheckReport,
  ListReport,
  RequestFailure,
  ResourceName,
  StreamReport,
} from '../../../machines/discovery/kubernetes/kubernetes-protocol.ts';
import { messageOf } from '../../runtime/errors.ts';
import { ApiError, statusOf } from './api-failure.ts';
import { apiVersionOf, customResourceDefinitions, type Resource } from './api-resource.ts';
import type { ApiServer, KubernetesObject, Selection } from './api-server.ts';
import { type InformerRequests, informerWithEffects } from './informer.effects.ts';
import { SharesOfKinds } from './store/namespace-shares.ts';
import { type ObjectChange, type ObjectKey, ObjectStore } from './store/object-store.ts';
import { type RefilledKind, Refills } from './store/refills.ts';
import { WatchReading } from './store/watch-reading.ts';

/** A kind that is followed, and which objects of it. */
export interface FollowedKind {
  readonly resource: Resource;
  /** Absent: all. */
  readonly selection?: Selection;
  /** Absent: that of the resource. A resource that is followed twice, as by two names, has two. */
  readonly name?: ResourceName;
  /** Others in which a server may have the kind, all of the same meaning: they are asked for where it does not know one. */
  readonly otherVersions?: readonly string[];
  /** Which objects are kept, by their key; absent: all. */
  readonly keeps?: (key: ObjectKey) => boolean;
  /** A reader reads the kept objects by itself, and may know one before its event comes. */
  readonly isOnDemand?: boolean;
}

/** A kind that was not handed over yet. */
export interface AwaitedKind {
  readonly name: ResourceName;
  /** Why it was refused last; absent: it was not. */
  readonly reason?: string;
}

/**
 * Is told what becomes of a kind's objects, when the store has it already. A promise is waited for before a whole set counts as
 * handled. It must not throw: what it throws is a fault that is told, and nothing is told again.
 */
export type StoreReader = (changes: readonly ObjectChange[]) => void | Promise<void>;

export interface InformerEffectsOptions {
  readonly server: ApiServer;
  readonly kinds: readonly FollowedKind[];
  /** At random, from 0 to 1. */
  readonly draw: () => number;
  /** Milliseconds, of any beginning. */
  readonly now: () => number;
  /** All kinds have been handed over once. */
  readonly synced?: () => void;
  /** It does not answer; undefined: it does again. */
  readonly lost?: (reason: string | undefined) => void;
  /** A kind has a definition, and the server serves none of the versions that are read here. Called for each request. */
  readonly unserved?: (resource: string, versions: readonly string[]) => void;
  /** A reader has thrown. */
  readonly fault: (error: unknown) => void;
  /** How much the objects of a namespace may take, by kind; absent: as this process's heap allows. */
  readonly shares?: SharesOfKinds;
  /** An object exceeds what its namespace may take: nothing but its name is kept. */
  readonly refused?: (kind: string, key: ObjectKey, reason: string) => void;
}

/** Tests have others, which are broken on purpose. */
export interface InformerCharts {
  readonly server: typeof apiServerMachine;
  readonly informer: typeof informerMachine;
}

/** Whose effects those of a server, or of a kind on it, are. */
export interface EffectsOfServers {
  ofServer(server: string): InformerEffects;
  ofResource(resource: ResourceName): InformerEffects;
}

const objectsOfPage = 500;
/** A server ends a watch after five to ten minutes: not all at once, and none grows old. */
const shortestWatchSeconds = 300;

/** The port has a limit of its own. */
const neverAborted = new AbortController().signal;

type TellFailure = (report: { type: 'request.failed'; failure: RequestFailure; draw: number }) => void;

interface Followed {
  readonly name: ResourceName;
  /** In each version, of which the first is asked for. */
  resources: readonly Resource[];
  readonly selection: Selection;
  readonly store: ObjectStore;
  readonly readers: StoreReader[];
  /** Settles when the first whole set was handed over. */
  readonly firstSet: PromiseWithResolvers<void>;
  isHandedOver: boolean;
  /** Of the last request, if it was refused. */
  reason: string | undefined;
}

export class InformerEffects {
  readonly #options: InformerEffectsOptions;
  readonly #kinds: ReadonlyMap<ResourceName, Followed>;
  readonly #refilledOf: ReadonlyMap<Followed, RefilledKind>;
  readonly #refills: Refills;

  readonly #requests: InformerRequests = {
    watch: (order, report) => this.#watch(order, report),
    list: (order, report) => this.#list(order, report),
    check: (resource, report) => this.#check(resource, report),
    handOver: (resource, absent) => this.#handOver(resource, absent),
  };

  constructor(options: InformerEffectsOptions) {
    this.#options = options;
    const { shares = new SharesOfKinds(), refused } = options;
    this.#kinds = new Map(
      options.kinds.map((kind) => followed(kind, shares, refused)).map((kind) => [kind.name, kind]),
    );
    this.#refilledOf = new Map([...this.#kinds.values()].map((kind) => [kind, this.#refilled(kind)]));
    this.#refills = new Refills([...this.#refilledOf.values()]);
  }

  /** The objects of the namespace, of which `keeps` has said that they are not kept, are kept from now on. */
  refill(resource: Resource | ResourceName, namespace: string): void {
    this.#refills.request(this.#refilledOf.get(this.#kindOf(nameOf(resource)))!, namespace);
  }

  /** The objects of the namespace, of which `keeps` says that they are not kept, are forgotten. */
  drop(resource: Resource | ResourceName, namespace: string): void {
    const kind = this.#kindOf(nameOf(resource));
    const changes = kind.store.drop(namespace);
    if (changes.length > 0) this.#tellReaders(kind, changes);
  }

  #refilled(kind: Followed): RefilledKind {
    const list = async (namespace: string, onItem: (object: KubernetesObject) => void): Promise<void> => {
      let next: string | undefined;
      do {
        const options = { ...kind.selection, namespace, limit: objectsOfPage, ...(next && { continue: next }) };
        const page = await inItsVersion(kind, (resource) =>
          this.#options.server.list(resource, options, neverAborted, onItem),
        );
        next = page.continue;
      } while (next !== undefined);
    };
    return { store: kind.store, list, tell: (changes) => this.#tellReaders(kind, changes) };
  }

  /** How many objects of a namespace were refused for their size, by kind and namespace. */
  *refusedObjects(): Iterable<{ readonly kind: string; readonly namespace: string; readonly count: number }> {
    for (const { resources, store } of this.#kinds.values()) {
      for (const [namespace, count] of store.refused) yield { kind: resources[0]!.kind, namespace, count };
    }
  }

  /** Input of the chart. */
  get resources(): ResourceName[] {
    return [...this.#kinds.keys()];
  }

  /** What is known of a kind, which goes by its resource or its name: empty until it was handed over. */
  storeOf(resource: Resource | ResourceName): ObjectStore {
    return this.#kindOf(nameOf(resource)).store;
  }

  /** In the version in which the server has it, as far as that is known. */
  served(resource: Resource | ResourceName): Resource {
    return this.#kindOf(nameOf(resource)).resources[0]!;
  }

  /** Added before the chart is started, so that it is told everything. Called one after the other, as they were added. */
  addReader(resource: Resource | ResourceName, reader: StoreReader): void {
    this.#kindOf(nameOf(resource)).readers.push(reader);
  }

  /** Settles when all that there is of the kind was handed over for the first time. */
  firstSet(resource: Resource | ResourceName): Promise<void> {
    return this.#kindOf(nameOf(resource)).firstSet.promise;
  }

  /** Kinds that have never been handed over. */
  get awaited(): readonly AwaitedKind[] {
    const kinds = [...this.#kinds.values()].filter(({ isHandedOver }) => !isHandedOver);
    return kinds.map(({ name, reason }) => ({ name, ...(reason !== undefined && { reason }) }));
  }

  /** The chart of the server, with these effects. */
  machine(charts?: InformerCharts): typeof apiServerMachine {
    return InformerEffects.machineOf({ ofServer: () => this, ofResource: () => this }, charts);
  }

  /** The chart of any of several servers. */
  static machineOf(
    { ofServer, ofResource }: EffectsOfServers,
    charts: InformerCharts = { server: apiServerMachine, informer: informerMachine },
  ): typeof apiServerMachine {
    const informer = informerWithEffects((resource) => ofResource(resource).#requests, charts.informer);
    return charts.server.provide({
      actors: {
        informer,
        ping: fromPromise<PingAnswer, { server: string }>(({ input, signal }) => ofServer(input.server).#ping(signal)),
        watchDefinitions: fromCallback<{ type: never }, { resources: ResourceName[] }>(({ input, sendBack }) =>
          ofResource(input.resources[0] ?? '').#watchDefinitions((resource, defined) =>
            sendBack({ type: 'definition.changed', resource, defined }),
          ),
        ),
      },
      actions: {
        reconnect: (_, { server }) => ofServer(server).#options.server.reconnect(),
        publishSynced: (_, { server }) => ofServer(server).#options.synced?.(),
        publishLost: (_, { server, reason }) => ofServer(server).#options.lost?.(reason),
        publishReached: (_, { server }) => ofServer(server).#options.lost?.(undefined),
      },
    });
  }

  #watch({ resource: name, initial, basis, version }: SetOrder, tell: (report: StreamReport) => void): () => void {
    const kind = this.#kindOf(name);
    const options = {
      ...kind.selection,
      timeoutSeconds: Math.round(shortestWatchSeconds * (1 + this.#options.draw())),
      ...(initial && { sendInitialEvents: true }),
      ...((!initial || basis === 'not older') && { resourceVersion: version }),
    };
    return this.#begin(kind, tell, async (signal) => {
      const reading = new WatchReading(kind.store, initial, this.#options.now, (report, changes) => {
        // They are in the store already, whether or not the chart still wants to know: the next whole set would not tell them again.
        if (changes.length > 0) this.#tellReaders(kind, changes);
        if (!signal.aborted) tell(report);
      });
      await inItsVersion(kind, (resource) => this.#options.server.watch(resource, options, reading.take, signal));
      reading.flush();
      if (reading.failure !== undefined) throw new ApiError(reading.failure);
      if (!signal.aborted) tell({ type: 'watch.ended' });
    });
  }

  #list({ resource: name, basis, version }: SetOrder, tell: (report: ListReport) => void): () => void {
    const kind = this.#kindOf(name);
    const { selection, store } = kind;
    return this.#begin(kind, tell, async (signal) => {
      store.beginSet();
      const options = {
        ...selection,
        ...(basis === 'not older' && { resourceVersion: version }),
        ...(basis === 'newest' && { limit: objectsOfPage }),
      };
      let next: string | undefined;
      for (;;) {
        const pageOptions = { ...options, ...(next !== undefined && { continue: next }) };
        let objects = 0;
        const take = (item: KubernetesObject): void => {
          if (!signal.aborted) objects = store.holdApart(item);
        };
        const page = await inItsVersion(kind, (resource) =>
          this.#options.server.list(resource, pageOptions, signal, take),
        );
        if (signal.aborted) return;
        tell({ type: 'page.taken', objects });
        next = page.continue;
        if (next === undefined) return tell({ type: 'list.ended', version: page.resourceVersion });
      }
    });
  }

  #check(name: ResourceName, tell: (report: CheckReport) => void): () => void {
    const kind = this.#kindOf(name);
    return this.#begin(kind, tell, async (signal) => {
      const options = { ...kind.selection, metadataOnly: true, limit: 1 };
      const { resourceVersion } = await inItsVersion(kind, (resource) =>
        this.#options.server.list(resource, options, signal),
      );
      if (!signal.aborted) tell({ type: 'history.seen', version: resourceVersion });
    });
  }

  async #handOver(name: ResourceName, absent: boolean): Promise<{ objects: number }> {
    const kind = this.#kindOf(name);
    const { store, readers } = kind;
    const changes = absent ? store.clear() : store.replace();
    // All of them in this turn: what comes over the watch meanwhile is told after it.
    await Promise.all(readers.map((reader) => this.#tellReader(reader, changes)));
    kind.isHandedOver = true;
    kind.reason = undefined;
    kind.firstSet.resolve();
    return { objects: store.size };
  }

  async #ping(signal: AbortSignal): Promise<PingAnswer> {
    try {
      await this.#options.server.ping(signal);
      return { outcome: 'answered' };
    } catch (error) {
      return { outcome: 'failed', reason: messageOf(error), draw: this.#options.draw() };
    }
  }

  /** From the objects that define kinds, if they are followed as well. */
  #watchDefinitions(tell: (resource: ResourceName, defined: boolean) => void): () => void {
    const definitions = this.#kinds.get(nameOf(customResourceDefinitions));
    const reader: StoreReader = (changes) => {
      for (const { name, resources } of this.#kinds.values()) {
        const [resource] = resources as [Resource];
        const last = changes.findLast(({ key }) => key === `/${resource.plural}.${resource.group}`);
        if (last !== undefined) tell(name, last.event !== 'delete');
      }
    };
    definitions?.readers.push(reader);
    return () => void definitions?.readers.splice(definitions.readers.indexOf(reader), 1);
  }

  #tellReaders({ readers }: Followed, changes: readonly ObjectChange[]): void {
    for (const reader of readers) void this.#tellReader(reader, changes);
    this.#refills.look();
  }

  async #tellReader(reader: StoreReader, changes: readonly ObjectChange[]): Promise<void> {
    try {
      await reader(changes);
    } catch (error) {
      this.#options.fault(error);
    }
  }

  /** What goes wrong is told, unless nobody wants to know any more. @returns ends it */
  #begin(kind: Followed, tell: TellFailure, work: (signal: AbortSignal) => Promise<void>): () => void {
    const abort = new AbortController();
    void this.#tellFailure(kind, abort.signal, tell, work);
    return () => abort.abort();
  }

  async #tellFailure(
    kind: Followed,
    signal: AbortSignal,
    tell: TellFailure,
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    try {
      await work(signal);
    } catch (error) {
      if (signal.aborted) return;
      const failure: RequestFailure =
        error instanceof ApiError
          ? { ...error.failure, message: error.message }
          : { kind: 'invalid', message: messageOf(error) };
      kind.reason = failure.message;
      if (statusOf(error) === 404) this.#reportUnserved(kind);
      tell({ type: 'request.failed', failure, draw: this.#options.draw() });
    }
  }

  /** Without a definition the kind is not there, which is no fault. */
  #reportUnserved({ resources }: Followed): void {
    const { plural, group } = resources[0]!;
    const definition = `${plural}.${group}`;
    const isDefined = this.#kinds.get(nameOf(customResourceDefinitions))?.store.get(`/${definition}`) !== undefined;
    if (isDefined) this.#options.unserved?.(definition, resources.map(({ version }) => version).sort());
  }

  #kindOf(name: ResourceName): Followed {
    const kind = this.#kinds.get(name);
    if (kind === undefined) throw new Error(`${name} is not followed`);
    return kind;
  }
}

function followed(
  { resource, selection = {}, name = nameOf(resource), otherVersions = [], keeps, isOnDemand }: FollowedKind,
  shares: SharesOfKinds,
  refused: InformerEffectsOptions['refused'],
): Followed {
  // What is selected by a namespace is the control plane's own.
  const isLimited = selection.namespace === undefined;
  const store = new ObjectStore({
    ...(isLimited && { shares: shares.of(resource.kind) }),
    ...(refused && { refused: (key, reason) => refused(resource.kind, key, reason) }),
    ...(keeps && { keeps }),
    ...(isOnDemand && { isOnDemand }),
  });
  return {
    ...{ name, selection, store, readers: [], isHandedOver: false, reason: undefined },
    resources: [resource, ...otherVersions.map((version) => ({ ...resource, version }))],
    firstSet: Promise.withResolvers(),
  };
}

/** Asks in the version that was known last, and in each of the others where the server does not know that one. */
async function inItsVersion<Answer>(kind: Followed, ask: (resource: Resource) => Promise<Answer>): Promise<Answer> {
  for (let left = kind.resources.length; ; ) {
    const [resource, ...others] = kind.resources as [Resource, ...Resource[]];
    try {
      return await ask(resource);
    } catch (error) {
      if (statusOf(error) !== 404) throw error;
      kind.resources = [...others, resource];
      if (--left === 0) throw error;
    }
  }
}

/** `v1/pods`, `networking.istio.io/v1/virtualservices`. */
export function nameOf(resource: Resource | ResourceName): ResourceName {
  return typeof resource === 'string' ? resource : `${apiVersionOf(resource)}/${resource.plural}`;
}
