/** Keeps unconfigured clusters at a client that may use them (machines/discovery/xds/cluster-removal.ts). */
import type { ResponseOrder } from '../../../../machines/discovery/xds/ads-protocol.ts';
import {
  clusterType,
  endpointType,
  extensionType,
  listenerType,
  routeType,
} from '../../../../machines/discovery/xds/ads-types.ts';
import { isSubscribed } from '../../../../machines/discovery/xds/ads-watch.ts';
import {
  type ClusterUse,
  namesEvictedBetween,
  removableClusters,
  withoutRemovable,
} from '../../../../machines/discovery/xds/cluster-removal.ts';
import type { Rollout } from '../../../../machines/discovery/xds/cluster-rollout.ts';
import type { RolloutRules } from '../../../../machines/discovery/xds/rollout-rules.ts';
import type { Watch } from '../../../../machines/discovery/xds/watch-record.ts';
import { memoizeByPair } from '../../../model/collections/memoize-by-object.ts';
import type { EncodedResource, ResourceSet } from '../resource-source.ts';
import { differenceOf } from '../responses/ads-sent.ts';
import { LayeredResources } from '../responses/layered-resources.ts';
import type { DepartedResources } from './departed-clusters.ts';
import { DrainingListeners, type DrainingStream } from './draining-listeners.ts';
import type { PreparedResponse } from './held-order.ts';
import type { NamingResource } from './rollout-waits.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

export interface RetainingStream extends DrainingStream {
  readonly rules: RolloutRules;
  readonly isDelta: boolean;
  /** Whether the client accepts unrequested clusters, like Envoy on ADS. */
  readonly takesUnrequested: boolean;
  watchOf(typeUrl: string): Watch | undefined;
  departedResources(): DepartedResources | undefined;
}

interface RetainedResponse {
  readonly rollout: Rollout;
  readonly order: ResponseOrder;
  readonly set: ResourceSet;
  readonly evictedClusters: readonly string[];
}

const namingTypes = [listenerType, routeType, extensionType];

const unionOf = memoizeByPair((previous: ResourceMap, current: ResourceMap) =>
  LayeredResources.sharedLayerOver(current, resourcesOf(previous, differenceOf(previous, current).removedNames), []),
);

export class ClusterRetention {
  readonly #stream: RetainingStream;
  readonly #drainingListeners: DrainingListeners;
  /**
   * Whether the client has listeners and routes of a previous stream and has acknowledged none on this one. `undefined` until it requests or
   * acknowledges clusters.
   */
  #hasPreviousStream: boolean | undefined;
  /** Unconfigured clusters of a previous stream, with the version that the client reported. */
  #previousStreamClusters: Map<string, string | undefined> | undefined;
  /** Set until the client acknowledges listeners or routes on this stream. */
  #departedResources: DepartedResources | undefined;

  constructor(stream: RetainingStream) {
    this.#stream = stream;
    this.#drainingListeners = new DrainingListeners(stream);
  }

  /** @param isHeldCluster whether a delayed resource names a cluster */
  clusters(
    rollout: Rollout,
    order: ResponseOrder,
    set: ResourceSet,
    isHeldCluster: (cluster: string) => boolean,
  ): RetainedResponse {
    const sentResources = this.#stream.sentResourcesOf(order.typeUrl);
    const isReturning = order.has !== undefined || order.returning !== undefined;
    if (isReturning) this.#hasPreviousStream ??= true;
    const previousStream = isReturning ? this.#lastStream() : undefined;
    const departedClusters = order.returning === undefined ? undefined : previousStream?.clusters;
    const previous = departedClusters ?? sentResources.resources;
    const unconfiguredNames = differenceOf(previous, set.resources).removedNames;
    const removedNames =
      departedClusters === undefined
        ? unconfiguredNames
        : unconfiguredNames.filter(this.#createUsageFilter(previousStream!));
    // Clusters of a previous stream, known by name only.
    const previousStreamNames = isReturning ? order.requested.filter((name) => !set.resources.has(name)) : [];
    if (removedNames.length + previousStreamNames.length + rollout.retained.length === 0) {
      return { rollout, order, set, evictedClusters: [] };
    }
    const next = this.#stream.rules.withRetained(
      rollout,
      [...new Set([...removedNames, ...previousStreamNames])],
      (name) => set.resources.has(name),
      () => this.#currentUse(isHeldCluster),
    );
    if (isReturning) {
      // Clusters that this stream has sent without a request are not from a previous one.
      const isFromThisStream = (name: string): boolean =>
        sentResources.has(name) && this.#previousStreamClusters?.has(name) !== true;
      const namesOfOtherStreams = [...removedNames, ...previousStreamNames].filter((name) => !isFromThisStream(name));
      this.#previousStreamClusters = versionsFromPreviousStream(order, namesOfOtherStreams);
    }
    const removableNames = removableClusters(next);
    for (const name of removableNames) this.#forgetVersion(name);
    const retainedResponse = withoutRemovable(next);
    const names = retainedResponse.retained.map(({ name }) => name);
    const isUnchangedSet = removableNames.length === 0 && names.length === unconfiguredNames.length;
    const resources = isUnchangedSet
      ? unionOf(previous, set.resources)
      : LayeredResources.sharedLayerOver(set.resources, resourcesOf(previous, names), []);
    const unrequestedNames = new Set(names);
    const unsentNames = removableNames.filter((name) => !sentResources.has(name));
    const requestedNames = [...order.requested.filter((name) => !unrequestedNames.has(name)), ...unsentNames];
    const isUnchanged = requestedNames.length === order.requested.length && unsentNames.length === 0;
    return {
      rollout: retainedResponse,
      order: isUnchanged ? order : { ...order, requested: requestedNames },
      set: { version: set.version, resources },
      evictedClusters: namesEvictedBetween(rollout, next),
    };
  }

  /**
   * Records a cluster of a previous stream as sent if it is configured again and the client has this version.
   *
   * @returns the names of all clusters that are configured again
   */
  recordReturned({ resources }: ResourceSet): readonly string[] {
    const sentResources = this.#stream.sentResourcesOf(clusterType);
    const configuredClusters = [...(this.#previousStreamClusters ?? [])].filter(([name]) => resources.has(name));
    const unchangedClusters = configuredClusters.flatMap(([name, version]) => {
      this.#forgetVersion(name);
      const cluster = resources.get(name)!;
      return cluster.version === version ? [cluster] : [];
    });
    if (unchangedClusters.length > 0) sentResources.markResourcesSent(unchangedClusters);
    return unchangedClusters.map(({ name }) => name);
  }

  #forgetVersion(name: string): void {
    if (this.#previousStreamClusters?.has(name) === true) this.#previousStreamClusters.set(name, undefined);
  }

  /**
   * Adds the endpoints of retained clusters, because generated endpoints for a removed name would be empty.
   *
   * @param inputs.configuredClusters all clusters of the node
   * @param inputs.outdatedNames names without a response, unless the client's resources are known
   * @param inputs.unusedNames sent on this stream and not used yet
   */
  endpoints(
    { retained }: Rollout,
    order: ResponseOrder,
    set: ResourceSet,
    inputs: {
      readonly configuredClusters: () => ResourceMap | undefined;
      readonly outdatedNames: readonly string[];
      readonly unusedNames: readonly string[];
    },
  ): PreparedResponse {
    const unusedSet = new Set(inputs.unusedNames);
    const leavingNames = [
      ...this.#leavingNames(order, inputs.configuredClusters).filter((name) => !unusedSet.has(name)),
      ...inputs.outdatedNames,
    ];
    const replacedNames = this.#namesOfReplacedTypes(order, set.resources);
    if (retained.length + leavingNames.length + replacedNames.length === 0) return { order, set };
    const sentResources = this.#stream.sentResourcesOf(order.typeUrl);
    const names = new Set([...retained.map(({ name }) => name), ...leavingNames, ...replacedNames]);
    const previousAssignments = this.#departedResources?.assignments;
    const retainedResources = [...names].flatMap(
      (name) => sentResources.get(name) ?? previousAssignments?.get(name) ?? [],
    );
    const isUnseen = (name: string): boolean => !sentResources.has(name) && previousAssignments?.has(name) !== true;
    const omissionCandidates = new Set([
      ...leavingNames,
      ...this.#namesWithoutResponse(order, retained, set.resources),
    ]);
    const unknownNames = [...names].filter(
      (name) => isUnseen(name) && (omissionCandidates.has(name) || this.#previousStreamClusters?.has(name) === true),
    );
    const resources = LayeredResources.sharedLayerOver(set.resources, retainedResources, unknownNames);
    if (resources === set.resources) return { order, set };
    return { order: omitNames(order, unknownNames), set: { version: set.version, resources } };
  }

  /**
   * Clusters whose configured version, which is not sent yet, no longer fetches endpoints. Their sent version must not get empty endpoints while it
   * warms, because the client still uses an earlier version.
   */
  findOutdatedForms(
    { requested: requestedNames }: ResponseOrder,
    resources: ResourceMap,
    configuredClusters: () => ResourceMap | undefined,
  ): readonly string[] {
    const { references } = this.#stream;
    const clusters = this.#stream.sentResourcesOf(clusterType);
    const isEmpty = (name: string): boolean => {
      const assignment = resources.get(name);
      return assignment !== undefined && references.isEmptyAssignment(assignment);
    };
    const emptyClusters = requestedNames.filter((name) => clusters.has(name) && isEmpty(name));
    const currentClusters = emptyClusters.length === 0 ? undefined : configuredClusters();
    if (currentClusters === undefined) return [];
    return emptyClusters.filter((name) => {
      const next = currentClusters.get(name);
      return next !== undefined && next !== clusters.get(name) && !references.fetchesEndpoints(next);
    });
  }

  /**
   * Clusters whose sent version no longer fetches endpoints. While the client warms that version (resolves names), it uses the previous one with its
   * endpoints.
   */
  #namesOfReplacedTypes({ typeUrl, changed }: ResponseOrder, resources: ResourceMap): readonly string[] {
    if (!changed) return [];
    const { references } = this.#stream;
    const clusters = this.#stream.sentResourcesOf(clusterType);
    const sentResources = this.#stream.sentResourcesOf(typeUrl);
    return sentResources.computeDifference(resources).changedNames.filter((name) => {
      const assignment = resources.get(name)!;
      if (!sentResources.has(name) || !references.isEmptyAssignment(assignment)) return false;
      const cluster = clusters.get(name);
      return cluster !== undefined && !references.fetchesEndpoints(cluster);
    });
  }

  /** Clusters of a previous stream that were removed before the client requested their endpoints, and are not retained yet. */
  #leavingNames(
    { all, requested: requestedNames, names }: ResponseOrder,
    configuredClusters: () => ResourceMap | undefined,
  ): readonly string[] {
    const namesToCheck = all ? names : requestedNames;
    if (this.#hasPreviousStream !== true || namesToCheck === '*' || namesToCheck.length === 0) return [];
    // A delta client requests the endpoints of all its clusters together, so later requests are for new clusters.
    if (this.#stream.isDelta && this.#stream.sentResourcesOf(endpointType).count > 0) return [];
    const clusters = this.#stream.sentResourcesOf(clusterType);
    const currentClusters = configuredClusters();
    if (currentClusters === undefined) return [];
    const isUsed =
      this.#departedResources === undefined ? () => true : this.#createUsageFilter(this.#departedResources);
    return namesToCheck.filter((name) => clusters.has(name) && !currentClusters.has(name) && isUsed(name));
  }

  /** Clusters of a previous stream that were removed before this stream sent their endpoints. No push contains these endpoints. */
  #namesWithoutResponse(
    { changed, requested: requestedNames }: ResponseOrder,
    retainedClusters: Rollout['retained'],
    resources: ResourceMap,
  ): readonly string[] {
    if (!changed) return [];
    const requestedSet = new Set(requestedNames);
    return retainedClusters.flatMap(({ name }) => {
      const assignment = resources.get(name);
      const isEmpty = assignment !== undefined && this.#stream.references.isEmptyAssignment(assignment);
      return isEmpty && !requestedSet.has(name) ? [name] : [];
    });
  }

  onReturning(): void {
    this.#drainingListeners.onReturning();
  }

  recordReplacement(typeUrl: string, next: ResourceMap): void {
    this.#drainingListeners.recordReplacement(typeUrl, next);
  }

  /** Includes listeners that the client may still use. */
  drainingFetches(routeConfiguration: string): boolean {
    return this.#drainingListeners.fetches(routeConfiguration);
  }

  endPreviousStream(typeUrl: string): void {
    this.#hasPreviousStream = false;
    this.#departedResources = undefined;
    if (this.#unacknowledgedNames().every((pendingType) => pendingType === typeUrl))
      this.#drainingListeners.startDrain();
  }

  /**
   * Whether the client may use a cluster of its previous stream. A cluster without endpoints on either stream is unused, because the client may not
   * even have received it.
   */
  #createUsageFilter({ clusters, assignments }: DepartedResources): (name: string) => boolean {
    const { references } = this.#stream;
    const sentResources = this.#stream.sentResourcesOf(endpointType);
    return (name) => {
      const cluster = clusters.get(name);
      if (cluster === undefined || !references.fetchesEndpoints(cluster)) return true;
      const { assignment } = references.usabilityOf(cluster);
      const currentResource = sentResources.get(assignment);
      return (
        assignments.has(assignment) || (currentResource !== undefined && !references.isEmptyAssignment(currentResource))
      );
    };
  }

  resources(hasClusters: boolean): DepartedResources | undefined {
    const clusters = hasClusters
      ? this.#stream.sentResourcesOf(clusterType).resources
      : this.#departedResources?.clusters;
    if (clusters === undefined) return undefined;
    const sentResources = this.#stream.sentResourcesOf(endpointType).resources;
    const last = [...(this.#departedResources?.assignments.values() ?? [])].filter(
      ({ name }) => !sentResources.has(name),
    );
    return { clusters, assignments: LayeredResources.sharedLayerOver(sentResources, last, []) };
  }

  #lastStream(): DepartedResources | undefined {
    this.#departedResources ??= this.#stream.departedResources();
    return this.#departedResources;
  }

  /**
   * Handles a client that requests endpoints before clusters. If the endpoints of a removed cluster are unknown, they are not sent and the client
   * keeps its own, because its routes may name the cluster.
   */
  endpointsOfLastStream(
    order: ResponseOrder,
    set: ResourceSet,
    isConfigured: (cluster: string) => boolean,
  ): PreparedResponse {
    const previousAssignments = this.#lastStream()?.assignments;
    const removedNames = [...set.resources.keys()].filter((name) => !isConfigured(name));
    if (removedNames.length === 0) return { order, set };
    const unknownNames = this.#stream.takesUnrequested
      ? removedNames.filter((name) => previousAssignments?.has(name) !== true)
      : [];
    const removedResources = previousAssignments === undefined ? [] : resourcesOf(previousAssignments, removedNames);
    const resources = LayeredResources.sharedLayerOver(set.resources, removedResources, unknownNames);
    return { order: omitNames(order, unknownNames), set: { version: set.version, resources } };
  }

  onAcknowledged(rollout: Rollout, typeUrl: string, isHeldCluster: (cluster: string) => boolean): Rollout {
    return this.#stream.rules.withUseAcknowledged(rollout, typeUrl, () => this.#currentUse(isHeldCluster));
  }

  createNamingLookup(isHeldCluster: (cluster: string) => boolean): (cluster: string) => NamingResource | undefined {
    const { references } = this.#stream;
    return (cluster) => {
      for (const typeUrl of namingTypes) {
        const namingResource = this.#subscribedResources(typeUrl).find((resource) =>
          references.names(resource, cluster),
        );
        if (namingResource !== undefined) return { typeUrl, name: namingResource.name };
      }
      if (isHeldCluster(cluster)) return 'held resource';
      return this.#hasPreviousStream === true ? 'previous stream' : undefined;
    };
  }

  #currentUse(isHeldCluster: (cluster: string) => boolean): ClusterUse {
    const { references } = this.#stream;
    let namingResources: readonly EncodedResource[] | undefined;
    const naming = (): readonly EncodedResource[] => {
      namingResources ??= namingTypes.flatMap((typeUrl) => this.#subscribedResources(typeUrl));
      return namingResources;
    };
    return {
      isNamed: (cluster) =>
        this.#hasPreviousStream === true ||
        isHeldCluster(cluster) ||
        naming().some((resource) => references.names(resource, cluster)),
      drains: this.#drainingListeners.createNamingFilter(),
      unacknowledged: this.#unacknowledgedNames(),
      drainSteps: this.#drainingListeners.drainSteps,
    };
  }

  #unacknowledgedNames(): readonly string[] {
    return namingTypes.filter((typeUrl) => {
      const watch = this.#stream.watchOf(typeUrl);
      if (watch === undefined || !isSubscribed(watch)) return false;
      return watch.nonceSent !== watch.nonceAcked || watch.awaits !== undefined;
    });
  }

  /** Envoy unsubscribes from routes when the last listener with them has drained. */
  #subscribedResources(typeUrl: string): readonly EncodedResource[] {
    const watch = this.#stream.watchOf(typeUrl);
    if (watch === undefined) return [];
    const { resources } = this.#stream.sentResourcesOf(typeUrl);
    return watch.wildcard ? [...resources.values()] : resourcesOf(resources, watch.names);
  }
}

function resourcesOf(resources: ResourceMap, names: readonly string[]): EncodedResource[] {
  return names.flatMap((name) => resources.get(name) ?? []);
}

function versionsFromPreviousStream({ has }: ResponseOrder, names: readonly string[]): Map<string, string | undefined> {
  const versions = new Map(has?.names.map((name, index) => [name, has.versions[index]]));
  return new Map(names.map((name) => [name, versions.get(name)]));
}

function omitNames(order: ResponseOrder, excludedNames: readonly string[]): ResponseOrder {
  if (excludedNames.length === 0) return order;
  const excludedSet = new Set(excludedNames);
  const omitExcluded = (names: readonly string[]): readonly string[] => names.filter((name) => !excludedSet.has(name));
  return {
    ...order,
    requested: omitExcluded(order.requested),
    names: order.names === '*' ? order.names : omitExcluded(order.names),
  };
}
