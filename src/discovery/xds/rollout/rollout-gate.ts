/**
 * Make before break on one stream: decides what of each response is sent now, by the rules of cluster-rollout.ts. Clusters are sent with
 * those that the client keeps (cluster-retention.ts); what names a cluster that it cannot use yet is held back (held-resources.ts).
 */
import type { AdsRequest, ResponseOrder } from '../../../../machines/discovery/xds/ads-protocol.ts';
import { clusterType, endpointType, listenerType } from '../../../../machines/discovery/xds/ads-types.ts';
import { isSubscribed } from '../../../../machines/discovery/xds/ads-watch.ts';
import {
  expiringClusters,
  givenUpBetween,
  isSearching,
  type VersionOf,
} from '../../../../machines/discovery/xds/cluster-limit.ts';
import { areRemovalsDue } from '../../../../machines/discovery/xds/cluster-removal.ts';
import {
  anyCluster,
  awaitedClusters,
  isAtRest,
  isGated,
  type Rollout,
  stepsOfLimit,
  withUnknownClusters,
} from '../../../../machines/discovery/xds/cluster-rollout.ts';
import type { Watch } from '../../../../machines/discovery/xds/watch-record.ts';
import type { Steps } from '../../../runtime/turns.ts';
import type { EncodedResource, ResourceSet } from '../resource-source.ts';
import type { Selection } from '../responses/ads-sent.ts';
import { ClusterRetention, type RetainingStream } from './cluster-retention.ts';
import type { DepartedResources } from './departed-clusters.ts';
import { DepartedConfigurations, type RoutedStream, readingRoutes } from './departed-configurations.ts';
import type { Prepared } from './held-order.ts';
import { HeldResources, type HoldingStream } from './held-resources.ts';
import type { RolloutEvent } from './rollout-events.ts';
import { type RecordedStream, RolloutRecord } from './rollout-record.ts';
import { clusterWaits, heldOf, keptOf, type RolloutWait } from './rollout-waits.ts';
import {
  clustersSent,
  readingClusters,
  readingNames,
  stepsOfFetch,
  suspectsFor,
  updatesThatFetch,
  type WarmingStream,
  withFetchLimits,
} from './warming-clusters.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

/** The stream that the gate is for. */
export interface GatedStream extends RetainingStream, WarmingStream, HoldingStream, RecordedStream, RoutedStream {
  /** Limit of a wait, in milliseconds. */
  readonly limitMs: number;
  /** A response waits until it is made, or until those before it have left; requests are not read meanwhile. */
  readonly isCongested: boolean;
}

/** How a client subscribes to clusters. Those that ask by name ask for routes first: nothing is held back for them. */
type ClusterSubscription = 'none' | 'all' | 'by name';

const noNames: readonly string[] = [];
const noHeld: Rollout['held'] = [];

export class RolloutGate {
  readonly #stream: GatedStream;
  readonly #retention: ClusterRetention;
  readonly #record: RolloutRecord;
  readonly #held: HeldResources;
  readonly #departed: DepartedConfigurations;
  #subscription: ClusterSubscription = 'none';
  /** The client has clusters, and requests none on this stream: an Envoy does so while one of them warms. */
  #isWarming = false;
  /** Version of the set that clusters were last sent from. */
  #clustersVersion = '';
  /** Clusters of the CDS response that is being made whose earlier forms the client has, and that it may warm without end. */
  #updated: readonly string[] = noNames;
  /** Of the CDS response that is being made: steps of the limit until more suspects are given up; 0: the limit. */
  #searchSteps = 0;
  #evicted = 0;
  /** Steps of the limit since the client could last be sent something. */
  #uncounted = 0;

  constructor(stream: GatedStream) {
    this.#stream = stream;
    this.#retention = new ClusterRetention(stream);
    this.#record = new RolloutRecord(stream);
    this.#held = new HeldResources(stream, this.#record);
    this.#departed = new DepartedConfigurations(stream, (name) => this.#retention.drainingFetches(name));
  }

  get rollout(): Rollout {
    return this.#record.current;
  }

  /** Clusters that were removed before their time. */
  get evicted(): number {
    return this.#evicted;
  }

  /** Version of the set from which resources of a type are sent that are held back; undefined: none is. */
  heldVersion(typeUrl: string): string | undefined {
    return this.#held.versionOf(typeUrl);
  }

  /** What is delayed of a type, and why. */
  waits(typeUrl: string): readonly RolloutWait[] {
    if (typeUrl !== clusterType) return [...heldOf(this.rollout, typeUrl), ...keptOf(this.#departed.of(typeUrl))];
    if (isAtRest(this.rollout)) return [];
    const { delayMs } = this.#stream.removal;
    const naming = this.#retention.naming((cluster) => this.#held.names(cluster));
    return clusterWaits(this.rollout, { removalDelayMs: delayMs, naming });
  }

  /** The stream has ended. */
  end(): void {
    this.#record.end();
  }

  /** The clusters for which resources of a type wait. */
  awaits(typeUrl: string): readonly string[] {
    return this.#record.current.held.length === 0 ? noNames : awaitedClusters(this.#record.current, typeUrl);
  }

  /**
   * Reads from resources that are new to the client what {@link prepare} and {@link sent} need of them, in steps. The results are
   * remembered for all streams.
   */
  *reading(order: ResponseOrder, set: ResourceSet): Steps<void> {
    const { version, resources } = set;
    const { typeUrl, has, asked } = order;
    const dropsGone = typeUrl === endpointType && asked.length > 0 && this.#record.current.newClusters.length > 0;
    if (dropsGone || this.#mayPrecedeClusters(order, version)) yield* this.#stream.generating(clusterType);
    if (this.#subscription !== 'by name') yield* readingRoutes(this.#stream, order, set);
    const { changed } = this.#stream.sentOf(typeUrl).differenceTo(resources);
    const { references } = this.#stream;
    const isKnown = this.#clustersVersion !== '' || has !== undefined;
    if (typeUrl === clusterType) {
      const isSearching = this.#isSearchingFor(order);
      const isFirst = this.#clustersVersion === '';
      yield* readingClusters(this.#stream, this.#record.current, resources, { isKnown, isFirst, isSearching });
    }
    if (isGated(typeUrl) && this.#record.current.newClusters.length > 0)
      yield* readingNames(references, resources, changed);
  }

  /** What may be sent now for an order; undefined: all of it waits. */
  prepare(order: ResponseOrder, set: ResourceSet): Prepared | undefined {
    const { typeUrl } = order;
    if (typeUrl === clusterType) return this.#clusters(order, set);
    if (typeUrl === endpointType) return this.#endpoints(order, set);
    if (!isGated(typeUrl) || this.#subscription === 'by name') return { order, set };
    if (isReturning(order)) this.#retention.returning();
    if (typeUrl === listenerType && order.names === '*') this.#requestsNoClusters(order);
    if (this.#subscription === 'none' && this.#isWarming && isReturning(order)) {
      this.#record.update(withUnknownClusters(this.#record.current), typeUrl);
    }
    const isOnlyReady = !order.all && !order.changed && order.asked.length === 0;
    const prepared = isOnlyReady ? this.#held.release(order) : this.#withoutDeparted(order, set);
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
    if (typeUrl === clusterType) this.#clustersAnswered(request, watch);
    if (!isGated(typeUrl) || watch === undefined || nonce === '') return;
    if (rejection !== null || nonce !== watch.nonceSent || nonce === watch.nonceRejected) return;
    this.#retention.proven(typeUrl);
    if (this.#record.current.retained.length > 0) {
      this.#record.update(
        this.#retention.acknowledged(this.#record.current, typeUrl, (cluster) => this.#held.names(cluster)),
      );
    }
  }

  #clustersAnswered(request: AdsRequest, watch: Watch | undefined): void {
    const { rules } = this.#stream;
    const { current } = this.#record;
    const sent = this.#stream.sentOf(clusterType).resources.keys();
    const known = rules.withUnknownRejected(current, request, watch, sent);
    const dropped = known === current ? noHeld : current.held.filter((one) => !known.held.includes(one));
    this.#record.update(rules.withClustersAnswered(known, request, watch));
    if (dropped.length > 0) this.#prepareAgain(dropped);
  }

  /** The client has unsubscribed from what may name clusters. @param watch after that */
  unsubscribed(typeUrl: string, watch: Watch): void {
    if (!isGated(typeUrl) || this.#record.current.retained.length === 0) return;
    const settledType = isSubscribed(watch) ? '' : typeUrl;
    this.#record.update(
      this.#retention.acknowledged(this.#record.current, settledType, (cluster) => this.#held.names(cluster)),
    );
  }

  /** What the client has, of this stream and of the one before it; `undefined` if it is not known. */
  get resources(): DepartedResources | undefined {
    return this.#retention.resources(this.#subscription === 'all');
  }

  /**
   * A step of the limit has passed. It does not count if the client can be sent nothing, and nothing is read from it; for a whole limit at
   * most, since Envoy waits 15 s for what it has requested.
   */
  expire(): void {
    this.#uncounted = this.#stream.isCongested ? this.#uncounted + 1 : 0;
    if (this.#uncounted > 0 && this.#uncounted <= stepsOfLimit) return;
    const before = this.#record.current;
    const clusters = expiringClusters(before);
    const sent = this.#stream.sentOf(clusterType);
    const { rules, takesUnrequested } = this.#stream;
    const versionOf = (name: string): string | undefined => sent.get(name)?.version;
    const isRequested = this.#subscription !== 'none';
    const step = rules.afterLimitStep(before, versionOf);
    const next = isRequested || takesUnrequested ? step : rules.withSuspects(step, noNames, versionOf);
    if (clusters.length > 0) this.#stream.tell({ type: 'clusters.abandoned', clusters });
    const unrequested: RolloutEvent = { type: 'clusters.unrequested', typeUrl: clusterType };
    this.#record.update(next, undefined, isSearching(next) && !isRequested ? unrequested : undefined);
    // What the client does not acknowledge now it may never acknowledge.
    if (clusters.length > 0) this.#stream.takeRolloutEvent({ type: 'acknowledgement.overdue', typeUrl: clusterType });
    if (isRequested && (next.givenUp !== before.givenUp || isSearching(next))) {
      this.#stream.takeRolloutEvent({ type: 'clusters.due', typeUrl: clusterType });
    }
  }

  /** A step of the removal delay has passed. */
  expireRemovals(): void {
    this.#record.update(this.#stream.rules.afterRemovalStep(this.#record.current));
    if (!areRemovalsDue(this.#record.current)) return;
    this.#stream.takeRolloutEvent({ type: 'clusters.due', typeUrl: clusterType });
  }

  // ---- clusters and their endpoints

  /** Clusters are new to a client before they are removed: what it uses stays in the response. */
  #clusters(order: ResponseOrder, set: ResourceSet): Prepared {
    this.#subscribed(order.names);
    if (this.#subscription !== 'all') return { order, set };
    const returned = this.#retention.returned(set);
    if (returned.length > 0) this.#noLongerUnsent(returned);
    const kept = this.#retention.clusters(this.#record.current, this.#withBrought(order, set), set, (cluster) =>
      this.#held.names(cluster),
    );
    if (kept.evicted.length > 0) {
      this.#evicted += kept.evicted.length;
      this.#stream.tell({ type: 'clusters.evicted', clusters: kept.evicted });
    }
    const versionOf = (name: string): string | undefined => set.resources.get(name)?.version;
    this.#record.update(this.#stream.rules.withConfiguration(kept.rollout, versionOf));
    // What kept these from being usable may do so in their new form.
    const reconfigured = givenUpBetween(this.#record.current, kept.rollout).filter((name) => set.resources.has(name));
    if (isSearching(this.#record.current)) this.#giveUpSuspects(order, set.resources, versionOf);
    const { references } = this.#stream;
    const { resources: before } = this.#stream.sentOf(clusterType);
    const next =
      this.#record.current.givenUp.length === 0
        ? kept.set
        : withFetchLimits(references, this.#record.current, kept.set, before);
    this.#updated =
      this.#clustersVersion === ''
        ? noNames
        : [...updatesThatFetch(references)(before, next.resources), ...reconfigured];
    return { order: kept.order, set: next };
  }

  /**
   * The client has clusters of another stream, and requests others than clusters: one of its clusters warms. If it does so without end,
   * clusters are sent without a request.
   */
  #requestsNoClusters(order: ResponseOrder): void {
    if (this.#subscription !== 'none' || !this.#stream.takesUnrequested || !isReturning(order)) return;
    this.#isWarming = true;
    this.#record.update(withUnknownClusters(this.#record.current), order.typeUrl);
  }

  /** What a delta client has of clusters is not known before it requests them: of those with endpoints, it has requested these. */
  #withBrought(order: ResponseOrder, { resources }: ResourceSet): ResponseOrder {
    if (!this.#stream.isDelta || this.#stream.watchOf(clusterType)?.unrequested !== true || !order.all) return order;
    const names = this.#stream.watchOf(endpointType)?.names ?? noNames;
    return { ...order, asked: names.filter((name) => !resources.has(name)) };
  }

  /** Whether clusters are given up with the response. A client that requests clusters warms none. */
  #isSearchingFor({ all }: ResponseOrder): boolean {
    return isSearching(this.#record.current) && (!all || this.#stream.watchOf(clusterType)?.unrequested === true);
  }

  #giveUpSuspects(order: ResponseOrder, clusters: ResourceMap, versionOf: VersionOf): void {
    const next = this.#isSearchingFor(order) ? suspectsFor(this.#stream, this.#record.current, clusters) : undefined;
    const suspects = next?.names ?? noNames;
    this.#searchSteps = next?.areCertain === true ? stepsOfFetch(this.#stream.limitMs) : 0;
    if (suspects.length > 0) this.#stream.tell({ type: 'clusters.abandoned', clusters: suspects });
    this.#record.update(this.#stream.rules.withSuspects(this.#record.current, suspects, versionOf));
  }

  #endpoints(order: ResponseOrder, set: ResourceSet): Prepared {
    if (this.#subscription === 'none') {
      this.#isWarming = true;
      this.#requestsNoClusters(order);
      const configured = this.#stream.generated(clusterType)?.resources;
      if (configured === undefined) return { order, set };
      return this.#retention.endpointsOfLastStream(order, set, (name) => configured.has(name));
    }
    const unused = this.#record.current.newClusters.filter(({ state }) => state === 'sent').map(({ name }) => name);
    if (order.asked.length > 0 && unused.length > 0) this.#dropGone(order.asked);
    const configured = (): ResourceMap | undefined => this.#stream.generated(clusterType)?.resources;
    const outdated = this.#retention.outdatedForms(order, set.resources, configured);
    // Without these endpoints the client does not acknowledge the form that needs them: the next form does not wait for that.
    if (outdated.length > 0) this.#stream.takeRolloutEvent({ type: 'acknowledgement.overdue', typeUrl: clusterType });
    return this.#retention.endpoints(this.#record.current, order, set, { configured, outdated, unused });
  }

  /** Of a cluster that was sent, and that a later change removed, the endpoints are not known any more: it will be usable without any. */
  #dropGone(asked: readonly string[]): void {
    const configured = this.#stream.generated(clusterType)?.resources;
    if (configured === undefined) return;
    const { rules } = this.#stream;
    const { current } = this.#record;
    const wanted = new Set(asked);
    const names = current.newClusters
      .filter(({ state, name, assignment }) => state === 'sent' && wanted.has(assignment) && !configured.has(name))
      .map(({ name }) => name);
    const sent = this.#stream.sentOf(clusterType);
    const next = names.length === 0 ? current : rules.withClustersGone(current, names);
    const isAnyGone = asked.some((name) => sent.has(name) && !configured.has(name));
    const last = isAnyGone ? rules.withUnknownGone(next) : next;
    if (last === current) return;
    const before = current.held;
    this.#record.update(last);
    this.#prepareAgain(before);
  }

  /** Resources that were held back no longer are, without being ready: each is prepared again, as it is configured now. */
  #prepareAgain(before: Rollout['held']): void {
    const { held } = this.#record.current;
    for (const typeUrl of new Set(before.filter((one) => !held.includes(one)).map((one) => one.typeUrl))) {
      if (!held.some((one) => one.typeUrl === typeUrl)) this.#held.drop(typeUrl);
      this.#stream.takeRolloutEvent({ type: 'resources.ready', typeUrl, names: noNames, changed: true });
    }
  }

  #subscribed(names: readonly string[] | '*'): void {
    this.#subscription = names === '*' ? 'all' : 'by name';
    if (this.#subscription === 'by name') this.#noLongerUnsent([anyCluster]);
  }

  #noLongerUnsent(absent: readonly string[]): void {
    const response = { nonce: '', added: [], updated: [], searchSteps: 0, sentAgain: [], absent };
    this.#record.update(this.#stream.rules.withClustersSent(this.#record.current, response));
  }

  #clustersSent(order: ResponseOrder, version: string, selection: Selection, nonce: string): void {
    const isFirst = this.#clustersVersion === '';
    this.#clustersVersion = version;
    if (this.#subscription !== 'all') return;
    const sent = { order, selection, nonce, isFirst, updated: this.#updated, searchSteps: this.#searchSteps };
    const response = clustersSent(this.#stream, this.#record.current, sent);
    const { rules } = this.#stream;
    // What waited for clusters that are in no response, or for all, is outdated: it is prepared again as it is configured now.
    const added = new Set(response.added.map(({ name }) => name));
    const gone = response.absent.filter((name) => !added.has(name));
    const { current } = this.#record;
    const known = gone.length === 0 ? current : rules.withClustersGone(current, gone);
    const dropped = known === current ? noHeld : current.held.filter((one) => !known.held.includes(one));
    this.#record.update(rules.withClustersSent(known, response));
    if (dropped.length > 0) this.#prepareAgain(dropped);
  }

  #assignmentsSent({ changed }: Selection): void {
    if (this.#record.current.newClusters.length === 0) return;
    const sent = this.#stream.sentOf(endpointType);
    const contained = changed === 'all' ? undefined : new Set(changed);
    this.#record.update(
      this.#stream.rules.withAssignmentsSent(this.#record.current, (name) => contained?.has(name) ?? sent.has(name)),
    );
  }

  // ---- what names clusters

  #withoutDeparted(order: ResponseOrder, set: ResourceSet): Prepared | undefined {
    const left = this.#departed.without(order, set, isReturning(order));
    if (left === undefined) {
      this.#held.skip(order);
      return undefined;
    }
    return this.#held.prepare(left.order, left.set, this.#unsentClusters(left.order, left.set));
  }

  /**
   * Clusters that the node should have, and that its client was not sent. Only an answer can come before them: what is pushed
   * comes after clusters of the same context.
   */
  #unsentClusters(order: ResponseOrder, { version }: ResourceSet): readonly string[] {
    if (!this.#mayPrecedeClusters(order, version)) return noNames;
    const clusters = this.#stream.generated(clusterType);
    return clusters === undefined ? noNames : this.#stream.sentOf(clusterType).differenceTo(clusters.resources).added;
  }

  #mayPrecedeClusters({ typeUrl, all, asked }: ResponseOrder, version: string): boolean {
    const isAnswer = all || asked.length > 0;
    return isAnswer && isGated(typeUrl) && this.#subscription === 'all' && version !== this.#clustersVersion;
  }
}

/** Whether the client has resources of the type from another stream. */
function isReturning({ returning, has }: ResponseOrder): boolean {
  return returning !== undefined || has !== undefined;
}
