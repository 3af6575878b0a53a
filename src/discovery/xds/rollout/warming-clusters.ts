import type { ResponseOrder } from '../../../../machines/discovery/xds/ads-protocol.ts';
import { clusterType, endpointType, secretType } from '../../../../machines/discovery/xds/ads-types.ts';
import {
  isSearching,
  type NextSuspects,
  nextSuspects,
  type Suspects,
} from '../../../../machines/discovery/xds/cluster-limit.ts';
import {
  anyCluster,
  type ClustersSent,
  type GivenUpCluster,
  type NewCluster,
  type Rollout,
  type SentCluster,
  stepsOfLimit,
} from '../../../../machines/discovery/xds/cluster-rollout.ts';
import type { Watch } from '../../../../machines/discovery/xds/watch-record.ts';
import { memoizeByObject, memoizeByPair } from '../../../model/collections/memoize-by-object.ts';
import type { Steps } from '../../../runtime/turns.ts';
import type { EncodedResource, FetchLimit, ResourceReferences, ResourceSet } from '../resource-source.ts';
import { differenceOf, type ResponseSelection, type SentResources } from '../responses/ads-sent.ts';
import { LayeredResources } from '../responses/layered-resources.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

/** Short, because Envoy has already waited for as long as the limit, and requests to a new cluster fail while it warms. */
const newClusterLimit: FetchLimit = { fetchMs: 1_000, awaitsNames: false };
/** As long as Envoy's default for sources without a limit, because Envoy keeps using the earlier version. */
const updatedClusterLimit: FetchLimit = { fetchMs: 15_000, awaitsNames: true };

/** @param cluster.isNew whether the client uses no earlier version */
export function fetchLimitOf({ isNew }: Pick<GivenUpCluster, 'isNew'>): FetchLimit {
  return isNew ? newClusterLimit : updatedClusterLimit;
}

/** Limit steps until Envoy uses the given-up updates and acknowledges clusters. */
export function stepsOfFetch(limitMs: number): number {
  return Math.ceil(updatedClusterLimit.fetchMs / (limitMs / stepsOfLimit)) + stepsOfLimit;
}

export interface WarmingStream {
  readonly references: ResourceReferences;
  sentResourcesOf(typeUrl: string): SentResources;
  watchOf(typeUrl: string): Watch | undefined;
}

export interface SentResponse {
  readonly order: ResponseOrder;
  readonly selection: ResponseSelection;
  readonly nonce: string;
  readonly isFirst: boolean;
  /** Updated clusters that the client may warm indefinitely. */
  readonly updated: readonly string[];
  /** Limit steps until more clusters that may block the ACK are given up. 0 means when the limit is reached. */
  readonly searchSteps: number;
}

export function buildClustersSent(
  stream: WarmingStream,
  rollout: Rollout,
  { order, selection, nonce, isFirst, updated, searchSteps }: SentResponse,
): ClustersSent {
  const sentResources = stream.sentResourcesOf(clusterType);
  const isReturning = !isFirst || order.has !== undefined || order.returning !== undefined;
  const isUnrequested = stream.watchOf(clusterType)?.unrequested === true;
  const { addedNames: names } = selection;
  const isResumed = isFirst && order.has !== undefined;
  const affectedNames = isResumed ? resumedClusters(stream, rollout, order, sentResources, names) : updated;
  const containedNames = selection.changedNames === 'all' ? undefined : new Set(selection.changedNames);
  const isContainedName = (name: string): boolean => containedNames?.has(name) ?? true;
  const limitedNames = new Set(rollout.givenUp.map(({ name }) => name));
  const namesOf = (isMatch: (cluster: NewCluster) => boolean): readonly string[] =>
    rollout.newClusters.filter(isMatch).map(({ name }) => name);
  const changedNames = namesOf(({ name, state }) => state === 'abandoned' && sentResources.has(name));
  const warmingCandidates = [...new Set([...affectedNames, ...changedNames])];
  return {
    nonce,
    added: isReturning && !isUnrequested ? addedClusters(stream, rollout, order, sentResources, names) : [],
    updated: [
      ...warmingCandidates.filter((name) => isContainedName(name) && !limitedNames.has(name)),
      ...(isSearching(rollout) ? [anyCluster] : []),
    ],
    searchSteps,
    sentAgain: resentClusters(stream, rollout, sentResources, names, isContainedName),
    absent: namesOf(
      ({ name, state }) => state === 'unsent' && (name === anyCluster || !isReturning || !sentResources.has(name)),
    ),
  };
}

function addedClusters(
  stream: WarmingStream,
  rollout: Rollout,
  order: ResponseOrder,
  sentResources: SentResources,
  names: readonly string[],
): SentCluster[] {
  if (order.returning !== undefined) return [{ name: anyCluster, needs: 'acknowledgement', assignment: '' }];
  if (names.length === 0) return [];
  const clientNames = new Set(order.has?.names);
  return markAsSent(
    stream,
    rollout,
    sentResources,
    names,
    names.filter((name) => !clientNames.has(name)),
  );
}

function resentClusters(
  stream: WarmingStream,
  rollout: Rollout,
  sentResources: SentResources,
  addedNames: readonly string[],
  isContained: (name: string) => boolean,
): SentCluster[] {
  const addedSet = new Set(addedNames);
  const isResent = ({ name, state }: NewCluster): boolean =>
    (state === 'rejected' || state === 'sent') && sentResources.has(name) && !addedSet.has(name) && isContained(name);
  const names = rollout.newClusters.filter(isResent).map(({ name }) => name);
  return names.length === 0 ? [] : markAsSent(stream, rollout, sentResources, addedNames, names);
}

function markAsSent(
  stream: WarmingStream,
  rollout: Rollout,
  sentResources: SentResources,
  addedNames: readonly string[],
  names: readonly string[],
): SentCluster[] {
  const { references } = stream;
  const isFetched = fetchedSecrets(references, rollout, sentResources, addedNames);
  return names.map((name) => {
    const { usableAfter, assignment, secrets } = references.usabilityOf(sentResources.get(name)!);
    // In delta, Envoy does not request endpoints that it already has for another cluster. It waits until they are sent again.
    if (assignment !== name) stream.sentResourcesOf(endpointType).forgetNames([assignment]);
    if (![...secrets].every(isFetched) || usableAfter === 'warming')
      return { name, assignment, needs: 'acknowledgement' };
    return { name, assignment, needs: usableAfter === 'at once' ? 'nothing' : 'assignment' };
  });
}

/** Clusters of a previous stream whose secrets no other cluster fetches. */
function resumedClusters(
  { references }: WarmingStream,
  rollout: Rollout,
  order: ResponseOrder,
  sentResources: SentResources,
  names: readonly string[],
): readonly string[] {
  if (names.length === 0) return [];
  const clientNames = new Set(order.has?.names);
  const updatedNames = names.filter((name) => clientNames.has(name));
  if (updatedNames.length === 0) return [];
  const isFetched = fetchedSecrets(references, rollout, sentResources, names);
  return updatedNames.filter((name) => ![...references.secretsOf(sentResources.get(name)!)].every(isFetched));
}

/** @param names clusters that may not be in use */
function fetchedSecrets(
  { secretsOf }: ResourceReferences,
  { newClusters }: Rollout,
  { resources }: SentResources,
  names: readonly string[],
): (secret: string) => boolean {
  const unusedNames = new Set([...names, ...newClusters.map(({ name }) => name)]);
  return memoizeByName((secret) => {
    for (const cluster of resources.values()) {
      if (!unusedNames.has(cluster.name) && secretsOf(cluster).has(secret)) return true;
    }
    return false;
  });
}

function memoizeByName(find: (name: string) => boolean): (name: string) => boolean {
  const isMatchByName = new Map<string, boolean>();
  return (name) => {
    const isMatch = isMatchByName.get(name) ?? find(name);
    isMatchByName.set(name, isMatch);
    return isMatch;
  };
}

/** Clusters whose new version fetches a secret that no cluster of the client fetched. */
export const updatesThatFetch = memoizeByObject((references: ResourceReferences) =>
  memoizeByPair((previous: ResourceMap, next: ResourceMap): readonly string[] => {
    const { changedNames, addedNames } = differenceOf(previous, next);
    if (changedNames.length === addedNames.length) return [];
    const addedSet = new Set(addedNames);
    return changedNames.filter((name) => {
      if (addedSet.has(name)) return false;
      return newSecrets(references, previous, next, name).some(
        (secret) => !secretUses(references)(previous).has(secret),
      );
    });
  }),
);

function newSecrets(
  { secretsOf }: ResourceReferences,
  previous: ResourceMap,
  next: ResourceMap,
  name: string,
): readonly string[] {
  const previousSecrets = secretsOf(previous.get(name)!);
  return [...secretsOf(next.get(name)!)].filter((secret) => !previousSecrets.has(secret));
}

const secretUses = memoizeByObject(({ secretsOf }: ResourceReferences) =>
  memoizeByObject((clusters: ResourceMap): ReadonlyMap<string, number> => {
    const useCounts = new Map<string, number>();
    for (const cluster of clusters.values()) {
      for (const secret of secretsOf(cluster)) useCounts.set(secret, (useCounts.get(secret) ?? 0) + 1);
    }
    return useCounts;
  }),
);

/** Clusters with rare secrets come first, because Envoy already has a common secret for other clusters. */
const fetchingClusters = memoizeByObject((references: ResourceReferences) =>
  memoizeByObject((clusters: ResourceMap): readonly string[] => {
    const useCounts = secretUses(references)(clusters);
    const rankedClusters = [...clusters.values()].flatMap((cluster) => {
      const counts = [...references.secretsOf(cluster)].map((secret) => useCounts.get(secret)!);
      return counts.length === 0 ? [] : [{ name: cluster.name, rank: Math.min(...counts) }];
    });
    return rankedClusters.sort((one, other) => one.rank - other.rank).map(({ name }) => name);
  }),
);

function findSuspects(stream: WarmingStream, clusters: ResourceMap): Suspects {
  const { references } = stream;
  const possibleSuspects = fetchingClusters(references)(clusters);
  const sentResources = stream.sentResourcesOf(secretType);
  const missingSecrets = new Set(stream.watchOf(secretType)?.names.filter((name) => !sentResources.has(name)));
  if (missingSecrets.size === 0) return { certain: [], possible: possibleSuspects };
  const fetchesMissing = (name: string): boolean =>
    [...references.secretsOf(clusters.get(name)!)].some((secret) => missingSecrets.has(secret));
  return { certain: possibleSuspects.filter(fetchesMissing), possible: possibleSuspects };
}

export function nextSuspectsFor(stream: WarmingStream, rollout: Rollout, clusters: ResourceMap): NextSuspects {
  return nextSuspects(rollout, findSuspects(stream, clusters));
}

export function withFetchLimits(
  references: ResourceReferences,
  { givenUp }: Rollout,
  { version, resources }: ResourceSet,
  sentResources: ResourceMap,
): ResourceSet {
  const limitedClusters = givenUp.flatMap((clusterWithLimit) => {
    const cluster = resources.get(clusterWithLimit.name);
    return cluster === undefined ? [] : [references.withFetchLimit(cluster, fetchLimitOf(clusterWithLimit))];
  });
  return { version, resources: LayeredResources.createLayerOver(resources, limitedClusters, [], sentResources) };
}

const clustersPerStep = 32;

/** Returns a function that runs steps until they were completed for the pair, because their results are cached. */
function createOncePerPair<First extends object, Second extends object>() {
  const progressOf = memoizeByPair((_first: First, _second: Second) => ({ isDone: false }));
  return function* (firstKey: First, secondKey: Second, steps: Steps<void>): Steps<void> {
    const progress = progressOf(firstKey, secondKey);
    if (progress.isDone) return;
    yield* steps;
    progress.isDone = true;
  };
}

/** Once the steps are completed, a client with the same clusters as others gets its response at once. */
const readingUsabilityOnce = createOncePerPair<ResourceMap, readonly string[]>();
const readingUpdatesOnce = createOncePerPair<ResourceMap, ResourceMap>();

function* readingUsability(
  references: ResourceReferences,
  clusters: ResourceMap,
  names: readonly string[],
): Steps<void> {
  for (const [index, name] of names.entries()) {
    references.usabilityOf(clusters.get(name)!);
    if (index % clustersPerStep === clustersPerStep - 1) yield;
  }
}

function* readingUpdates({ secretsOf }: ResourceReferences, previous: ResourceMap, next: ResourceMap): Steps<void> {
  const { changedNames, addedNames } = differenceOf(previous, next);
  const addedSet = new Set(addedNames);
  let fetchesMore = false;
  for (const [index, name] of changedNames.entries()) {
    if (addedSet.has(name)) continue;
    const previousSecrets = secretsOf(previous.get(name)!);
    for (const secret of secretsOf(next.get(name)!)) if (!previousSecrets.has(secret)) fetchesMore = true;
    if (index % clustersPerStep === clustersPerStep - 1) yield;
  }
  if (fetchesMore) yield* readingSecrets({ secretsOf }, previous);
}

function* readingSecrets({ secretsOf }: Pick<ResourceReferences, 'secretsOf'>, clusters: ResourceMap): Steps<void> {
  let index = 0;
  for (const cluster of clusters.values()) {
    secretsOf(cluster);
    if (++index % clustersPerStep === 0) yield;
  }
}

function* readingSuspects(stream: WarmingStream, rollout: Rollout, clusters: ResourceMap): Steps<void> {
  const { references } = stream;
  yield* readingSecrets(references, clusters);
  for (const name of nextSuspectsFor(stream, rollout, clusters).names) {
    references.withFetchLimit(clusters.get(name)!, updatedClusterLimit);
    yield;
  }
}

/**
 * @param response.isKnown whether the resources of the client are known
 * @param response.isFirst whether this is the first CDS response on the stream
 */
export function* readingClusters(
  stream: WarmingStream,
  rollout: Rollout,
  clusters: ResourceMap,
  response: { readonly isKnown: boolean; readonly isFirst: boolean; readonly isSearching: boolean },
): Steps<void> {
  const { references } = stream;
  const sentResources = stream.sentResourcesOf(clusterType);
  const previous = sentResources.resources;
  if (response.isKnown) {
    const { addedNames } = sentResources.computeDifference(clusters);
    yield* readingUsabilityOnce(clusters, addedNames, readingUsability(references, clusters, addedNames));
  }
  if (!response.isFirst) yield* readingUpdatesOnce(previous, clusters, readingUpdates(references, previous, clusters));
  if (response.isSearching) yield* readingSuspects(stream, rollout, clusters);
}

export function* readingNames(
  references: ResourceReferences,
  resources: ResourceMap,
  names: readonly string[],
): Steps<void> {
  for (const name of names) {
    references.referencedNamesAmong(resources.get(name)!, noClusters);
    yield;
  }
}

const noClusters: ReadonlySet<string> = new Set();
