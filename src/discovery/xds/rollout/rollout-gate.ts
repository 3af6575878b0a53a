/**
 * Decides according to cluster-rollout.ts which part of each response is sent now: clusters together with those that the client keeps, and other
 * resources when their clusters are usable.
 */
import type { AdsRequest, ResponseOrder } from '../../../../machines/discovery/xds/ads-protocol.ts';
import { clusterType, endpointType, listenerType } from '../../../../machines/discovery/xds/ads-types.ts';
import { isSubscribed } from '../../../../machines/discovery/xds/ads-watch.ts';
import {
  expiringClusters,
  isSearching,
  namesGivenUpBetween,
  type VersionOf,
} from '../../../../machines/discovery/xds/cluster-limit.ts';
import { areRemovalsDue } from '../../../../machines/discovery/xds/cluster-removal.ts';
import {
  anyCluster,
  awaitedClusters,
  isGated,
  isIdle,
  type Rollout,
  stepsOfLimit,
  withUnknownClusters,
} from '../../../../machines/discovery/xds/cluster-rollout.ts';
import type { Watch } from '../../../../machines/discovery/xds/watch-record.ts';
import type { Steps } from '../../../runtime/turns.ts';
import type { EncodedResource, ResourceSet } from '../resource-source.ts';
import type { ResponseSelection } from '../responses/ads-sent.ts';
import { ClusterRetention, type RetainingStream } from './cluster-retention.ts';
import type { DepartedResources } from './departed-clusters.ts';
import { DepartedConfigurations, type RoutedStream, readingRoutes } from './departed-configurations.ts';
import type { PreparedResponse } from './held-order.ts';
import { HeldResources, type HoldingStream } from './held-resources.ts';
import type { RolloutEvent } from './rollout-events.ts';
import { type RecordedStream, RolloutRecord } from './rollout-record.ts';
import { clusterWaits, heldWaitsOf, type RolloutWait, retentionWaitsOf } from './rollout-waits.ts';
import {
  buildClustersSent,
  nextSuspectsFor,
  readingClusters,
  readingNames,
  stepsOfFetch,
  updatesThatFetch,
  type WarmingStream,
  withFetchLimits,
} from './warming-clusters.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

export interface GatedStream extends RetainingStream, WarmingStream, HoldingStream, RecordedStream, RoutedStream {
  readonly limitMs: number;
  readonly isCongested: boolean;
  /** A client that has half-closed the stream acknowledges no clusters. */
  readonly isHalfClosed: boolean;
}

/** `by name` delays nothing, because such clients request routes before their clusters. */
type ClusterSubscription = 'none' | 'all' | 'by name';

const noNames: readonly string[] = [];
const noHeldResources: Rollout['held'] = [];

export class RolloutGate {
  readonly #stream: GatedStream;
  readonly #retention: ClusterRetention;
  readonly #record: RolloutRecord;
  readonly #heldResources: HeldResources;
  readonly #departedConfigurations: DepartedConfigurations;
  #subscription: ClusterSubscription = 'none';
  /** Whether the client has clusters and requests none on this stream, like an Envoy while one of them warms. */
  #isWarming = false;
  #clustersVersion = '';
  /** Clusters that the current CDS response updates and that the client may warm indefinitely. */
  #updatedNames: readonly string[] = noNames;
  /** Limit steps until more clusters that may block the ACK are given up. 0 means when the limit is reached. */
  #searchSteps = 0;
  #evictedCount = 0;
  /** Consecutive steps in which nothing could be sent. */
  #blockedSteps = 0;

  constructor(stream: GatedStream) {
    this.#stream = stream;
    this.#retention = new ClusterRetention(stream);
    this.#record = new RolloutRecord(stream);
    this.#heldResources = new HeldResources(stream, this.#record);
    this.#departedConfigurations = new DepartedConfigurations(stream, (name) => this.#retention.drainingFetches(name));
  }

  get rollout(): Rollout {
    return this.#record.current;
  }

  get evictedCount(): number {
    return this.#evictedCount;
  }

  heldVersion(typeUrl: string): string | undefined {
    return this.#heldResources.versionOf(typeUrl);
  }

  waitsOf(typeUrl: string): readonly RolloutWait[] {
    if (typeUrl !== clusterType)
      return [
        ...heldWaitsOf(this.rollout, typeUrl),
        ...retentionWaitsOf(this.#departedConfigurations.retainedNamesOf(typeUrl)),
      ];
    if (isIdle(this.rollout)) return [];
    const { delayMs } = this.#stream.removal;
    const naming = this.#retention.createNamingLookup((cluster) => this.#heldResources.names(cluster));
    return clusterWaits(this.rollout, { removalDelayMs: delayMs, naming });
  }

  end(): void {
    this.#record.end();
  }

  awaitedClusters(typeUrl: string): readonly string[] {
    return this.#record.current.held.length === 0 ? noNames : awaitedClusters(this.#record.current, typeUrl);
  }

  /** All streams share the cached results. */
  *precomputeInSteps(order: ResponseOrder, set: ResourceSet): Steps<void> {
    const { version, resources } = set;
    const { typeUrl, has, requested: requestedNames } = order;
    const dropsRemoved =
      typeUrl === endpointType && requestedNames.length > 0 && this.#record.current.newClusters.length > 0;
    if (dropsRemoved || this.#mayPrecedeClusters(order, version)) yield* this.#stream.generateInSteps(clusterType);
    if (this.#subscription !== 'by name') yield* readingRoutes(this.#stream, order, set);
    const { changedNames } = this.#stream.sentResourcesOf(typeUrl).computeDifference(resources);
    const { references } = this.#stream;
    const hasClusterList = this.#clustersVersion !== '' || has !== undefined;
    if (typeUrl === clusterType) {
      const isSearching = this.#isSearchingFor(order);
      const isFirst = this.#clustersVersion === '';
      yield* readingClusters(this.#stream, this.#record.current, resources, {
        isKnown: hasClusterList,
        isFirst,
        isSearching,
      });
    }
    if (isGated(typeUrl) && this.#record.current.newClusters.length > 0)
      yield* readingNames(references, resources, changedNames);
  }

  /** `undefined` if everything waits. */
  prepare(order: ResponseOrder, set: ResourceSet): PreparedResponse | undefined {
    const { typeUrl } = order;
    if (typeUrl === clusterType) return this.#prepareClusters(order, set);
    if (typeUrl === endpointType) return this.#prepareEndpoints(order, set);
    if (!isGated(typeUrl) || this.#subscription === 'by name' || this.#stream.isHalfClosed) return { order, set };
    if (isReturning(order)) this.#retention.onReturning();
    if (typeUrl === listenerType && order.names === '*') this.#requestsNoClusters(order);
    if (this.#subscription === 'none' && this.#isWarming && isReturning(order)) {
      this.#record.update(withUnknownClusters(this.#record.current), typeUrl);
    }
    const isOnlyReady = !order.all && !order.changed && order.requested.length === 0;
    const preparedResponse = isOnlyReady ? this.#heldResources.release(order) : this.#prepareDeparted(order, set);
    if (preparedResponse !== undefined) this.#retention.recordReplacement(typeUrl, preparedResponse.set.resources);
    return preparedResponse;
  }

  /** Called before the outcome of the response is reported. */
  onSent(order: ResponseOrder, version: string, selection: ResponseSelection, nonce: string): void {
    if (order.typeUrl === endpointType) this.#recordAssignmentsSent(selection);
    if (order.typeUrl === clusterType) this.#recordClustersSent(order, version, selection, nonce);
  }

  /** @param watch the subscription before the request */
  onRequest(request: AdsRequest, watch: Watch | undefined): void {
    const { typeUrl, nonce, rejection } = request;
    if (typeUrl === clusterType) this.#onClustersAcknowledged(request, watch);
    if (!isGated(typeUrl) || watch === undefined || nonce === '') return;
    if (rejection !== null || nonce !== watch.nonceSent || nonce === watch.nonceRejected) return;
    this.#retention.endPreviousStream(typeUrl);
    if (this.#record.current.retained.length > 0) {
      this.#record.update(
        this.#retention.onAcknowledged(this.#record.current, typeUrl, (cluster) => this.#heldResources.names(cluster)),
      );
    }
  }

  #onClustersAcknowledged(request: AdsRequest, watch: Watch | undefined): void {
    const { rules } = this.#stream;
    const { current } = this.#record;
    const sentNames = this.#stream.sentResourcesOf(clusterType).resources.keys();
    const nextRollout = rules.withUnknownRejected(current, request, watch, sentNames);
    const droppedResources =
      nextRollout === current
        ? noHeldResources
        : current.held.filter((heldResource) => !nextRollout.held.includes(heldResource));
    this.#record.update(rules.withClustersAcknowledged(nextRollout, request, watch));
    if (droppedResources.length > 0) this.#prepareDropped(droppedResources);
  }

  /** @param watch the subscription after the request */
  onUnsubscribed(typeUrl: string, watch: Watch): void {
    if (!isGated(typeUrl) || this.#record.current.retained.length === 0) return;
    const settledType = isSubscribed(watch) ? '' : typeUrl;
    this.#record.update(
      this.#retention.onAcknowledged(this.#record.current, settledType, (cluster) =>
        this.#heldResources.names(cluster),
      ),
    );
  }

  get resources(): DepartedResources | undefined {
    return this.#retention.resources(this.#subscription === 'all');
  }

  /** Pauses while nothing can be sent to the client, but at most for the time limit, because Envoy waits 15 s for requested resources. */
  expire(): void {
    this.#blockedSteps = this.#stream.isCongested ? this.#blockedSteps + 1 : 0;
    if (this.#blockedSteps > 0 && this.#blockedSteps <= stepsOfLimit) return;
    const previous = this.#record.current;
    const clusters = expiringClusters(previous);
    const sentResources = this.#stream.sentResourcesOf(clusterType);
    const { rules, takesUnrequested } = this.#stream;
    const versionOf = (name: string): string | undefined => sentResources.get(name)?.version;
    const isRequested = this.#subscription !== 'none';
    const step = rules.afterLimitStep(previous, versionOf);
    const next = isRequested || takesUnrequested ? step : rules.withSuspects(step, noNames, versionOf);
    if (clusters.length > 0) this.#stream.onReport({ type: 'clusters.abandoned', clusters });
    const unrequestedEvent: RolloutEvent = { type: 'clusters.unrequested', typeUrl: clusterType };
    this.#record.update(next, undefined, isSearching(next) && !isRequested ? unrequestedEvent : undefined);
    // The client may never acknowledge the response with these clusters.
    if (clusters.length > 0) this.#stream.onRolloutEvent({ type: 'acknowledgement.overdue', typeUrl: clusterType });
    if (isRequested && (next.givenUp !== previous.givenUp || isSearching(next))) {
      this.#stream.onRolloutEvent({ type: 'clusters.due', typeUrl: clusterType });
    }
  }

  expireRemovals(): void {
    this.#record.update(this.#stream.rules.afterRemovalStep(this.#record.current));
    if (!areRemovalsDue(this.#record.current)) return;
    this.#stream.onRolloutEvent({ type: 'clusters.due', typeUrl: clusterType });
  }

  /** Prepares clusters. New clusters are sent before others are removed, so clusters in use stay in the response. */
  #prepareClusters(order: ResponseOrder, set: ResourceSet): PreparedResponse {
    this.#onSubscription(order.names);
    if (this.#subscription !== 'all') return { order, set };
    const returnedNames = this.#retention.recordReturned(set);
    if (returnedNames.length > 0) this.#removeUnsent(returnedNames);
    const retainedResponse = this.#retention.clusters(
      this.#record.current,
      this.#withPreviousStreamClusters(order, set),
      set,
      (cluster) => this.#heldResources.names(cluster),
    );
    if (retainedResponse.evictedClusters.length > 0) {
      this.#evictedCount += retainedResponse.evictedClusters.length;
      this.#stream.onReport({ type: 'clusters.evicted', clusters: retainedResponse.evictedClusters });
    }
    const versionOf = (name: string): string | undefined => set.resources.get(name)?.version;
    this.#record.update(this.#stream.rules.withConfiguration(retainedResponse.rollout, versionOf));
    // A new version may correct the reason why these clusters were unusable.
    const reconfiguredNames = namesGivenUpBetween(this.#record.current, retainedResponse.rollout).filter((name) =>
      set.resources.has(name),
    );
    if (isSearching(this.#record.current)) this.#abandonSuspects(order, set.resources, versionOf);
    const { references } = this.#stream;
    const { resources: previous } = this.#stream.sentResourcesOf(clusterType);
    const next =
      this.#record.current.givenUp.length === 0
        ? retainedResponse.set
        : withFetchLimits(references, this.#record.current, retainedResponse.set, previous);
    this.#updatedNames =
      this.#clustersVersion === ''
        ? noNames
        : [...updatesThatFetch(references)(previous, next.resources), ...reconfiguredNames];
    return { order: retainedResponse.order, set: next };
  }

  /**
   * Handles a client with clusters of a previous stream that does not request clusters first, because one of them warms. If it warms indefinitely,
   * clusters are sent without a request.
   */
  #requestsNoClusters(order: ResponseOrder): void {
    if (this.#subscription !== 'none' || !this.#stream.takesUnrequested || !isReturning(order)) return;
    this.#isWarming = true;
    this.#record.update(withUnknownClusters(this.#record.current), order.typeUrl);
  }

  /** Adds the clusters of a delta client, which are unknown until it requests clusters. It has requested the endpoints of those that use EDS. */
  #withPreviousStreamClusters(order: ResponseOrder, { resources }: ResourceSet): ResponseOrder {
    if (!this.#stream.isDelta || this.#stream.watchOf(clusterType)?.unrequested !== true || !order.all) return order;
    const names = this.#stream.watchOf(endpointType)?.names ?? noNames;
    return { ...order, requested: names.filter((name) => !resources.has(name)) };
  }

  /** Whether to search for clusters that block the ACK. A client that requests clusters warms none. */
  #isSearchingFor({ all }: ResponseOrder): boolean {
    return isSearching(this.#record.current) && (!all || this.#stream.watchOf(clusterType)?.unrequested === true);
  }

  #abandonSuspects(order: ResponseOrder, clusters: ResourceMap, versionOf: VersionOf): void {
    const next = this.#isSearchingFor(order)
      ? nextSuspectsFor(this.#stream, this.#record.current, clusters)
      : undefined;
    const suspectNames = next?.names ?? noNames;
    this.#searchSteps = next?.areCertain === true ? stepsOfFetch(this.#stream.limitMs) : 0;
    if (suspectNames.length > 0) this.#stream.onReport({ type: 'clusters.abandoned', clusters: suspectNames });
    this.#record.update(this.#stream.rules.withSuspects(this.#record.current, suspectNames, versionOf));
  }

  #prepareEndpoints(order: ResponseOrder, set: ResourceSet): PreparedResponse {
    if (this.#subscription === 'none') {
      this.#isWarming = true;
      this.#requestsNoClusters(order);
      const configuredClusters = this.#stream.generatedSet(clusterType)?.resources;
      if (configuredClusters === undefined) return { order, set };
      return this.#retention.endpointsOfLastStream(order, set, (name) => configuredClusters.has(name));
    }
    const unusedNames = this.#record.current.newClusters
      .filter(({ state }) => state === 'sent')
      .map(({ name }) => name);
    if (order.requested.length > 0 && unusedNames.length > 0) this.#markRemovedUsable(order.requested);
    const getConfigured = (): ResourceMap | undefined => this.#stream.generatedSet(clusterType)?.resources;
    const outdatedNames = this.#retention.findOutdatedForms(order, set.resources, getConfigured);
    // Without these endpoints the client does not acknowledge the version that needs them, so the next version must not wait for an ACK.
    if (outdatedNames.length > 0)
      this.#stream.onRolloutEvent({ type: 'acknowledgement.overdue', typeUrl: clusterType });
    return this.#retention.endpoints(this.#record.current, order, set, {
      configuredClusters: getConfigured,
      outdatedNames: outdatedNames,
      unusedNames: unusedNames,
    });
  }

  /** Marks removed clusters as usable: the endpoints of a sent cluster that was removed later are unknown. */
  #markRemovedUsable(requestedNames: readonly string[]): void {
    const configuredClusters = this.#stream.generatedSet(clusterType)?.resources;
    if (configuredClusters === undefined) return;
    const { rules } = this.#stream;
    const { current } = this.#record;
    const requestedSet = new Set(requestedNames);
    const names = current.newClusters
      .filter(
        ({ state, name, assignment }) =>
          state === 'sent' && requestedSet.has(assignment) && !configuredClusters.has(name),
      )
      .map(({ name }) => name);
    const sentResources = this.#stream.sentResourcesOf(clusterType);
    const next = names.length === 0 ? current : rules.withClustersRemoved(current, names);
    const isAnyRemoved = requestedNames.some((name) => sentResources.has(name) && !configuredClusters.has(name));
    const finalRollout = isAnyRemoved ? rules.withUnknownRemoved(next) : next;
    if (finalRollout === current) return;
    const previous = current.held;
    this.#record.update(finalRollout);
    this.#prepareDropped(previous);
  }

  #prepareDropped(previous: Rollout['held']): void {
    const { held } = this.#record.current;
    for (const typeUrl of new Set(
      previous.filter((heldResource) => !held.includes(heldResource)).map((heldResource) => heldResource.typeUrl),
    )) {
      if (!held.some((heldResource) => heldResource.typeUrl === typeUrl)) this.#heldResources.drop(typeUrl);
      this.#stream.onRolloutEvent({ type: 'resources.ready', typeUrl, names: noNames, changed: true });
    }
  }

  #onSubscription(names: readonly string[] | '*'): void {
    this.#subscription = names === '*' ? 'all' : 'by name';
    if (this.#subscription === 'by name') this.#removeUnsent([anyCluster]);
  }

  #removeUnsent(absentNames: readonly string[]): void {
    const response = { nonce: '', added: [], updated: [], searchSteps: 0, sentAgain: [], absent: absentNames };
    this.#record.update(this.#stream.rules.withClustersSent(this.#record.current, response));
  }

  #recordClustersSent(order: ResponseOrder, version: string, selection: ResponseSelection, nonce: string): void {
    const isFirst = this.#clustersVersion === '';
    this.#clustersVersion = version;
    if (this.#subscription !== 'all') return;
    const sentResponse = {
      order,
      selection,
      nonce,
      isFirst,
      updated: this.#updatedNames,
      searchSteps: this.#searchSteps,
    };
    const response = buildClustersSent(this.#stream, this.#record.current, sentResponse);
    const { rules } = this.#stream;
    // Resources that wait for clusters that no response contains are outdated, so they are prepared again.
    const addedNames = new Set(response.added.map(({ name }) => name));
    const removedNames = response.absent.filter((name) => !addedNames.has(name));
    const { current } = this.#record;
    const nextRollout = removedNames.length === 0 ? current : rules.withClustersRemoved(current, removedNames);
    const droppedResources =
      nextRollout === current
        ? noHeldResources
        : current.held.filter((heldResource) => !nextRollout.held.includes(heldResource));
    this.#record.update(rules.withClustersSent(nextRollout, response));
    if (droppedResources.length > 0) this.#prepareDropped(droppedResources);
  }

  #recordAssignmentsSent({ changedNames }: ResponseSelection): void {
    if (this.#record.current.newClusters.length === 0) return;
    const sentResources = this.#stream.sentResourcesOf(endpointType);
    const containedNames = changedNames === 'all' ? undefined : new Set(changedNames);
    this.#record.update(
      this.#stream.rules.withAssignmentsSent(
        this.#record.current,
        (name) => containedNames?.has(name) ?? sentResources.has(name),
      ),
    );
  }

  #prepareDeparted(order: ResponseOrder, set: ResourceSet): PreparedResponse | undefined {
    const remainingOrder = this.#departedConfigurations.prepareWithoutDeparted(order, set, isReturning(order));
    if (remainingOrder === undefined) {
      this.#heldResources.skipHeld(order);
      return undefined;
    }
    return this.#heldResources.prepare(
      remainingOrder.order,
      remainingOrder.set,
      this.#unsentClusters(remainingOrder.order, remainingOrder.set),
    );
  }

  /** Only a response to a request can precede its clusters, because a push sends clusters of the same context first. */
  #unsentClusters(order: ResponseOrder, { version }: ResourceSet): readonly string[] {
    if (!this.#mayPrecedeClusters(order, version)) return noNames;
    const clusters = this.#stream.generatedSet(clusterType);
    return clusters === undefined
      ? noNames
      : this.#stream.sentResourcesOf(clusterType).computeDifference(clusters.resources).addedNames;
  }

  #mayPrecedeClusters({ typeUrl, all, requested: requestedNames }: ResponseOrder, version: string): boolean {
    const isRequestResponse = all || requestedNames.length > 0;
    return isRequestResponse && isGated(typeUrl) && this.#subscription === 'all' && version !== this.#clustersVersion;
  }
}

function isReturning({ returning, has }: ResponseOrder): boolean {
  return returning !== undefined || has !== undefined;
}
