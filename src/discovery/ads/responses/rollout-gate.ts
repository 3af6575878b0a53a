/**
 * Make before break on one stream: applies the rules of cluster-rollout.ts to what is sent. Listeners, routes and extension
 * configurations that name a cluster which the client cannot use yet are taken out of a response and sent when it can.
 */
import type { AdsRequest, ResponseOrder } from '../../../../machines/discovery/ads/ads-protocol.ts';
import { clusterType, endpointType, listenerType } from '../../../../machines/discovery/ads/ads-types.ts';
import { isSubscribed } from '../../../../machines/discovery/ads/ads-watch.ts';
import { expiringClusters, isSearching, type VersionOf } from '../../../../machines/discovery/ads/cluster-limit.ts';
import { areRemovalsDue } from '../../../../machines/discovery/ads/cluster-removal.ts';
import {
  anyCluster,
  awaitedClusters,
  type HeldResource,
  isAtRest,
  isGated,
  isWaiting,
  newRollout,
  type Rollout,
  readyResources,
  unusableClusters,
  withUnknownClusters,
} from '../../../../machines/discovery/ads/cluster-rollout.ts';
import type { Watch } from '../../../../machines/discovery/ads/watch-record.ts';
import type { Steps } from '../../../runtime/turns.ts';
import type { EncodedResource, ResourceSet } from '../resource-source.ts';
import type { Selection } from './ads-sent.ts';
import { ClusterRetention, type RetainingStream } from './cluster-retention.ts';
import { ofOrder, type Prepared, withoutHeld } from './held-order.ts';
import { LayeredResources } from './layered-resources.ts';
import { eventsOf, type ReportedStream, type RolloutEvent, RolloutReports } from './rollout-events.ts';
import {
  clustersSent,
  readingClusters,
  readingNames,
  suspectsFor,
  updatesThatFetch,
  type WarmingStream,
  withFetchLimits,
} from './warming-clusters.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

/** The stream that the gate is for. */
export interface GatedStream extends RetainingStream, WarmingStream, ReportedStream {
  readonly isDelta: boolean;
  /** All clusters that the node should have now. */
  generatedClusters(): ResourceSet | undefined;
  /** Prepares them, in steps. */
  generatingClusters(): Steps<void>;
  takeRolloutEvent(event: RolloutEvent): void;
  /** The one list of these names that all streams share. */
  sharedNames(names: readonly string[]): readonly string[];
}

/** What resources of a type will be when they are sent: of the newest set whose clusters were all sent. */
interface Candidates {
  readonly set: ResourceSet;
  /** A newer set was not looked at, because it names clusters that were not sent. */
  readonly isOutdated: boolean;
}

/** How a client subscribes to clusters. Those that ask by name ask for routes first: nothing is held back for them. */
type ClusterSubscription = 'none' | 'all' | 'by name';

const noNames: readonly string[] = [];

export class RolloutGate {
  readonly #stream: GatedStream;
  readonly #retention: ClusterRetention;
  readonly #reports: RolloutReports;
  #rollout: Rollout = newRollout;
  #subscription: ClusterSubscription = 'none';
  /** The client has clusters, and requests none on this stream: an Envoy does so while one of them warms. */
  #isWarming = false;
  /** Version of the set that clusters were last sent from. */
  #clustersVersion = '';
  /** Clusters of the CDS response that is being made whose earlier forms the client has, and that it may warm without end. */
  #updated: readonly string[] = noNames;
  #evicted = 0;
  /** Undefined while nothing is held back. */
  #candidates: Map<string, Candidates> | undefined;

  constructor(stream: GatedStream) {
    this.#stream = stream;
    this.#retention = new ClusterRetention(stream);
    this.#reports = new RolloutReports(stream);
  }

  get rollout(): Rollout {
    return this.#rollout;
  }

  /** Clusters that were removed before their time. */
  get evicted(): number {
    return this.#evicted;
  }

  get isWaiting(): boolean {
    return isWaiting(this.#rollout);
  }

  /** Version of the set from which resources of a type are sent that are held back; undefined: none is. */
  heldVersion(typeUrl: string): string | undefined {
    return this.#candidates?.get(typeUrl)?.set.version;
  }

  /** The clusters for which resources of a type wait. */
  awaits(typeUrl: string): readonly string[] {
    return this.#rollout.held.length === 0 ? noNames : awaitedClusters(this.#rollout, typeUrl);
  }

  /**
   * Reads from resources that are new to the client what {@link prepare} and {@link sent} need of them, in steps. The results are
   * remembered for all streams.
   */
  *reading(order: ResponseOrder, { version, resources }: ResourceSet): Steps<void> {
    const { typeUrl, has, asked } = order;
    const dropsGone = typeUrl === endpointType && asked.length > 0 && this.#rollout.newClusters.length > 0;
    if (dropsGone || this.#mayPrecedeClusters(order, version)) yield* this.#stream.generatingClusters();
    const { changed } = this.#stream.sentOf(typeUrl).differenceTo(resources);
    const { references } = this.#stream;
    const isKnown = this.#clustersVersion !== '' || has !== undefined;
    if (typeUrl === clusterType) {
      const isSearching = this.#isSearchingFor(order);
      const isFirst = this.#clustersVersion === '';
      yield* readingClusters(this.#stream, this.#rollout, resources, { isKnown, isFirst, isSearching });
    }
    if (isGated(typeUrl) && this.#rollout.newClusters.length > 0) yield* readingNames(references, resources, changed);
  }

  /** What may be sent now for an order; undefined: all of it waits. */
  prepare(order: ResponseOrder, set: ResourceSet): Prepared | undefined {
    const { typeUrl } = order;
    if (typeUrl === clusterType) return this.#clusters(order, set);
    if (typeUrl === endpointType) return this.#endpoints(order, set);
    if (!isGated(typeUrl) || this.#subscription === 'by name') return { order, set };
    if (typeUrl === listenerType && order.names === '*') this.#requestsNoClusters(order);
    if (this.#subscription === 'none' && this.#isWarming && isReturning(order)) {
      this.#update(withUnknownClusters(this.#rollout), typeUrl);
    }
    const isOnlyReady = !order.all && !order.changed && order.asked.length === 0;
    const prepared = isOnlyReady ? this.#released(order) : this.#looked(order, set);
    if (prepared !== undefined) this.#retention.replacing(typeUrl, prepared.set.resources);
    return prepared;
  }

  /** A response is on its way; called before its outcome is reported. */
  sent(order: ResponseOrder, version: string, selection: Selection, nonce: string): void {
    if (order.typeUrl === endpointType) this.#assignmentsSent(selection);
    if (order.typeUrl === clusterType) this.#clustersSent(order, version, selection, nonce);
  }

  /** The client says something of clusters, or of what names them. @param watch before that */
  heard(request: AdsRequest, watch: Watch | undefined): void {
    const { typeUrl, nonce, rejection } = request;
    if (typeUrl === clusterType) this.#update(this.#stream.rules.withClustersAnswered(this.#rollout, request, watch));
    if (!isGated(typeUrl) || watch === undefined || nonce === '') return;
    if (rejection !== null || nonce !== watch.nonceSent || nonce === watch.nonceRejected) return;
    this.#retention.proven();
    if (this.#rollout.retained.length > 0) {
      this.#update(this.#retention.acknowledged(this.#rollout, typeUrl, (cluster) => this.#isNamedLater(cluster)));
    }
  }

  /** The client has unsubscribed from what may name clusters. @param watch after that */
  unsubscribed(typeUrl: string, watch: Watch): void {
    if (!isGated(typeUrl) || this.#rollout.retained.length === 0) return;
    const settledType = isSubscribed(watch) ? '' : typeUrl;
    this.#update(this.#retention.acknowledged(this.#rollout, settledType, (cluster) => this.#isNamedLater(cluster)));
  }

  /** All clusters that the client was sent, if it has asked for all. */
  get clusters(): ReadonlyMap<string, EncodedResource> | undefined {
    return this.#subscription === 'all' ? this.#stream.sentOf(clusterType).resources : undefined;
  }

  /** A step of the limit has passed. */
  expire(): void {
    const before = this.#rollout;
    const clusters = expiringClusters(before);
    const sent = this.#stream.sentOf(clusterType);
    const { rules, takesUnrequested } = this.#stream;
    const versionOf = (name: string): string | undefined => sent.get(name)?.version;
    const isRequested = this.#subscription !== 'none';
    const step = rules.afterLimitStep(before, versionOf);
    const next = isRequested || takesUnrequested ? step : rules.withSuspects(step, noNames, versionOf);
    if (clusters.length > 0) this.#stream.tell({ type: 'clusters.abandoned', clusters });
    const unrequested: RolloutEvent = { type: 'clusters.unrequested', typeUrl: clusterType };
    this.#update(next, undefined, isSearching(next) && !isRequested ? unrequested : undefined);
    // What the client does not acknowledge now it may never acknowledge.
    if (clusters.length > 0) this.#stream.takeRolloutEvent({ type: 'acknowledgement.overdue', typeUrl: clusterType });
    if (isRequested && (next.givenUp !== before.givenUp || isSearching(next))) {
      this.#stream.takeRolloutEvent({ type: 'clusters.due', typeUrl: clusterType });
    }
  }

  /** A step of the removal delay has passed. */
  expireRemovals(): void {
    this.#update(this.#stream.rules.afterRemovalStep(this.#rollout));
    if (!areRemovalsDue(this.#rollout)) return;
    this.#stream.takeRolloutEvent({ type: 'clusters.due', typeUrl: clusterType });
  }

  // ---- clusters and their endpoints

  /** Clusters are new to a client before they are removed: what it uses stays in the response. */
  #clusters(order: ResponseOrder, set: ResourceSet): Prepared {
    this.#subscribed(order.names);
    if (this.#subscription !== 'all') return { order, set };
    const kept = this.#retention.clusters(this.#rollout, this.#withBrought(order, set), set, (cluster) =>
      this.#isNamedLater(cluster),
    );
    if (kept.evicted.length > 0) {
      this.#evicted += kept.evicted.length;
      this.#stream.tell({ type: 'clusters.evicted', clusters: kept.evicted });
    }
    const versionOf = (name: string): string | undefined => set.resources.get(name)?.version;
    this.#update(this.#stream.rules.withConfiguration(kept.rollout, versionOf));
    if (isSearching(this.#rollout)) this.#giveUpSuspects(order, set.resources, versionOf);
    const { references } = this.#stream;
    const { resources: before } = this.#stream.sentOf(clusterType);
    const next =
      this.#rollout.givenUp.length === 0 ? kept.set : withFetchLimits(references, this.#rollout, kept.set, before);
    this.#updated = this.#clustersVersion === '' ? noNames : updatesThatFetch(references)(before, next.resources);
    return { order: kept.order, set: next };
  }

  /**
   * The client has clusters of another stream, and requests others than clusters: one of its clusters warms. If it does so without end,
   * clusters are sent without a request.
   */
  #requestsNoClusters(order: ResponseOrder): void {
    if (this.#subscription !== 'none' || !this.#stream.takesUnrequested || !isReturning(order)) return;
    this.#isWarming = true;
    this.#update(withUnknownClusters(this.#rollout), order.typeUrl);
  }

  /** What a delta client has of clusters is not known before it requests them: of those with endpoints, it has requested these. */
  #withBrought(order: ResponseOrder, { resources }: ResourceSet): ResponseOrder {
    if (!this.#stream.isDelta || this.#stream.watchOf(clusterType)?.unrequested !== true || !order.all) return order;
    const names = this.#stream.watchOf(endpointType)?.names ?? noNames;
    return { ...order, asked: names.filter((name) => !resources.has(name)) };
  }

  /** Whether clusters are given up with the response. A client that requests clusters warms none. */
  #isSearchingFor({ all }: ResponseOrder): boolean {
    return isSearching(this.#rollout) && (!all || this.#stream.watchOf(clusterType)?.unrequested === true);
  }

  #giveUpSuspects(order: ResponseOrder, clusters: ResourceMap, versionOf: VersionOf): void {
    const suspects = this.#isSearchingFor(order) ? suspectsFor(this.#stream, this.#rollout, clusters) : noNames;
    if (suspects.length > 0) this.#stream.tell({ type: 'clusters.abandoned', clusters: suspects });
    this.#update(this.#stream.rules.withSuspects(this.#rollout, suspects, versionOf));
  }

  #endpoints(order: ResponseOrder, set: ResourceSet): Prepared {
    if (this.#subscription === 'none') {
      this.#isWarming = true;
      this.#requestsNoClusters(order);
      const configured = this.#stream.generatedClusters()?.resources;
      if (configured === undefined) return { order, set };
      return this.#retention.endpointsOfLastStream(order, set, (name) => configured.has(name));
    }
    if (order.asked.length > 0 && this.#rollout.newClusters.length > 0) this.#dropGone(order.asked);
    const configured = (): ResourceMap | undefined => this.#stream.generatedClusters()?.resources;
    const outdated = this.#retention.outdatedForms(order, set.resources, configured);
    // Without these endpoints the client does not acknowledge the form that needs them: the next form does not wait for that.
    if (outdated.length > 0) this.#stream.takeRolloutEvent({ type: 'acknowledgement.overdue', typeUrl: clusterType });
    return this.#retention.endpoints(this.#rollout, order, set, configured, outdated);
  }

  /** Of a cluster that was sent, and that a later change removed, the endpoints are not known any more: it will be usable without any. */
  #dropGone(asked: readonly string[]): void {
    const configured = this.#stream.generatedClusters()?.resources;
    if (configured === undefined) return;
    const wanted = new Set(asked);
    const names = this.#rollout.newClusters
      .filter(({ state, name, assignment }) => state === 'sent' && wanted.has(assignment) && !configured.has(name))
      .map(({ name }) => name);
    const before = this.#rollout.held;
    if (names.length === 0) return;
    this.#update(this.#stream.rules.withClustersGone(this.#rollout, names));
    const { held } = this.#rollout;
    for (const typeUrl of new Set(before.filter((one) => !held.includes(one)).map((one) => one.typeUrl))) {
      if (!held.some((one) => one.typeUrl === typeUrl)) this.#setCandidates(typeUrl, undefined);
      this.#stream.takeRolloutEvent({ type: 'resources.ready', typeUrl, names: noNames, changed: true });
    }
  }

  /** Whether a resource that is held back names the cluster. */
  #isNamedLater(cluster: string): boolean {
    return this.#rollout.held.some(({ typeUrl, name }) => {
      const resource = this.#candidates?.get(typeUrl)?.set.resources.get(name);
      return resource !== undefined && this.#stream.references.names(resource, cluster);
    });
  }

  #subscribed(names: readonly string[] | '*'): void {
    this.#subscription = names === '*' ? 'all' : 'by name';
    if (this.#subscription === 'by name') {
      this.#update(
        this.#stream.rules.withClustersSent(this.#rollout, {
          nonce: '',
          added: [],
          updated: [],
          sentAgain: [],
          absent: [anyCluster],
        }),
      );
    }
  }

  #clustersSent(order: ResponseOrder, version: string, selection: Selection, nonce: string): void {
    const isFirst = this.#clustersVersion === '';
    this.#clustersVersion = version;
    if (this.#subscription !== 'all') return;
    const response = { order, selection, nonce, isFirst, updated: this.#updated };
    this.#update(
      this.#stream.rules.withClustersSent(this.#rollout, clustersSent(this.#stream, this.#rollout, response)),
    );
  }

  #assignmentsSent({ changed }: Selection): void {
    if (this.#rollout.newClusters.length === 0) return;
    const sent = this.#stream.sentOf(endpointType);
    const contained = changed === 'all' ? undefined : new Set(changed);
    this.#update(
      this.#stream.rules.withAssignmentsSent(this.#rollout, (name) => contained?.has(name) ?? sent.has(name)),
    );
  }

  // ---- what names clusters

  /** Looks at what the order would send: what cannot be sent is replaced by what the client has. */
  #looked(order: ResponseOrder, set: ResourceSet): Prepared | undefined {
    const { typeUrl } = order;
    const candidates = this.#candidates?.get(typeUrl);
    const unsent = this.#unsentClusters(order, set);
    const blocking = new Set([...unusableClusters(this.#rollout), ...unsent]);
    if (blocking.size === 0 && candidates === undefined) return { order, set };
    const sent = this.#stream.sentOf(typeUrl);
    const changed = ofOrder(order, sent.differenceTo(set.resources).changed, set);
    const held = changed.flatMap((name): HeldResource[] => {
      const clusters = this.#blocking(set.resources.get(name)!, blocking);
      return clusters.length === 0 ? [] : [{ typeUrl, name, clusters }];
    });
    const isUnsent = new Set(unsent);
    const awaitsUnsent = held.some(({ clusters }) => clusters.some((name) => isUnsent.has(name)));
    // An older candidate whose clusters were sent goes before a newer one whose clusters were not.
    if (awaitsUnsent && candidates !== undefined) {
      this.#setCandidates(typeUrl, { set: candidates.set, isOutdated: true });
      const older = new Set(this.#rollout.held.filter((one) => one.typeUrl === typeUrl).map(({ name }) => name));
      const newer = held.filter(({ name }) => !older.has(name));
      this.#hold(order, newer, unsent, older);
      return withoutHeld(order, set, new Set(held.map(({ name }) => name)), sent);
    }
    this.#setCandidates(typeUrl, held.length === 0 ? undefined : { set, isOutdated: false });
    this.#hold(order, held, unsent, new Set());
    if (held.length === 0) return { order, set };
    return withoutHeld(order, set, new Set(held.map(({ name }) => name)), sent);
  }

  /**
   * Clusters that the node should have, and that its client was not sent. Only an answer can come before them: what is pushed
   * comes after clusters of the same context.
   */
  #unsentClusters(order: ResponseOrder, { version }: ResourceSet): readonly string[] {
    if (!this.#mayPrecedeClusters(order, version)) return noNames;
    const clusters = this.#stream.generatedClusters();
    return clusters === undefined ? noNames : this.#stream.sentOf(clusterType).differenceTo(clusters.resources).added;
  }

  #mayPrecedeClusters({ typeUrl, all, asked }: ResponseOrder, version: string): boolean {
    const isAnswer = all || asked.length > 0;
    return isAnswer && isGated(typeUrl) && this.#subscription === 'all' && version !== this.#clustersVersion;
  }

  #blocking(resource: EncodedResource, blocking: ReadonlySet<string>): readonly string[] {
    const named = this.#stream.references.namesAmong(resource, blocking);
    return blocking.has(anyCluster) ? [anyCluster, ...named] : named;
  }

  #hold(
    order: ResponseOrder,
    held: readonly HeldResource[],
    unsent: readonly string[],
    kept: ReadonlySet<string>,
  ): void {
    const isPartial = !order.all && !order.changed;
    const asked = new Set(order.asked);
    const awaited = new Set(held.flatMap(({ clusters }) => clusters));
    this.#update(
      this.#stream.rules.withHeld(
        this.#rollout,
        ({ typeUrl, name }) => typeUrl === order.typeUrl && !kept.has(name) && (!isPartial || asked.has(name)),
        held,
        unsent.filter((name) => awaited.has(name)),
      ),
      order.typeUrl,
    );
  }

  // ---- what was held back

  /** Sends what was held back and is ready, as it was then. */
  #released(order: ResponseOrder): Prepared | undefined {
    const { typeUrl } = order;
    const candidates = this.#candidates?.get(typeUrl);
    const ready = new Set(readyResources(this.#rollout, typeUrl));
    if (candidates === undefined || ready.size === 0) return undefined;
    const sent = this.#stream.sentOf(typeUrl);
    const { set } = candidates;
    const subscribed = order.names === '*' ? undefined : new Set(order.names);
    const asked = this.#stream.sharedNames(
      [...ready].filter((name) => set.resources.has(name) && (subscribed?.has(name) ?? true)),
    );
    this.#update(
      this.#stream.rules.withHeld(this.#rollout, (one) => one.typeUrl === typeUrl && ready.has(one.name), [], noNames),
      typeUrl,
    );
    if (!this.#rollout.held.some((one) => one.typeUrl === typeUrl)) this.#setCandidates(typeUrl, undefined);
    if (candidates.isOutdated)
      this.#stream.takeRolloutEvent({ type: 'resources.ready', typeUrl, names: noNames, changed: true });
    if (asked.length === 0) return undefined;
    const { changed, removed } = sent.differenceTo(set.resources);
    const isAll = removed.length === 0 && changed.every((name) => ready.has(name));
    const resources = isAll
      ? set.resources
      : LayeredResources.shared(
          sent.resources,
          asked.map((name) => set.resources.get(name)!),
          noNames,
        );
    return { order: { ...order, asked }, set: { version: set.version, resources } };
  }

  #setCandidates(typeUrl: string, candidates: Candidates | undefined): void {
    if (candidates === undefined) {
      this.#candidates?.delete(typeUrl);
      if (this.#candidates?.size === 0) this.#candidates = undefined;
    } else {
      this.#candidates ??= new Map();
      this.#candidates.set(typeUrl, candidates);
    }
  }

  // ---- what follows

  /**
   * Takes the next record, and tells what follows. What is told may lead to responses, and so to records after this one.
   *
   * @param current type of the order that is being answered: its outcome says for what it waits
   * @param first goes before what follows
   */
  #update(next: Rollout, current?: string, first?: RolloutEvent): void {
    const before = this.#rollout;
    if (next === before) return;
    this.#rollout = isAtRest(next) ? newRollout : next;
    this.#reports.report(() => this.#rollout);
    if (first !== undefined) this.#stream.takeRolloutEvent(first);
    if (before.held === this.#rollout.held) return;
    for (const event of [...eventsOf(before, this.#rollout, current)]) this.#stream.takeRolloutEvent(event);
  }
}

/** Whether the client has resources of the type from another stream. */
function isReturning({ returning, has }: ResponseOrder): boolean {
  return returning !== undefined || has !== undefined;
}
