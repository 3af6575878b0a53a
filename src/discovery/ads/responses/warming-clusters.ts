/** Which clusters a client will warm when it reads a CDS response, and until when (machines/discovery/ads/cluster-rollout.ts). */
import type { ResponseOrder } from '../../../../machines/discovery/ads/ads-protocol.ts';
import { clusterType, endpointType } from '../../../../machines/discovery/ads/ads-types.ts';
import {
  anyCluster,
  type ClustersSent,
  type NewCluster,
  type Rollout,
  type SentCluster,
} from '../../../../machines/discovery/ads/cluster-rollout.ts';
import { onceFor, onceForPair } from '../../../model/collections/once-for.ts';
import type { Steps } from '../../../runtime/turns.ts';
import type { EncodedResource, FetchLimit, ResourceReferences, ResourceSet } from '../resource-source.ts';
import { differenceOf, type Selection, type SentResources } from './ads-sent.ts';
import { LayeredResources } from './layered-resources.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

/** Envoy has waited for a new cluster for as long as the limit; requests to it fail as long as it warms. */
const newClusterLimit: FetchLimit = { fetchMs: 1_000, awaitsNames: false };
/** Envoy uses an earlier form of the cluster while it waits: its own default for sources without a limit. */
const updatedClusterLimit: FetchLimit = { fetchMs: 15_000, awaitsNames: true };
/** A response that changes more clusters than this is not searched for secrets: one step must not take long. */
const maxInspectedUpdates = 1_000;
/** If more clusters than this may be the reason for a missing acknowledgement, none is given up: the client may just be slow. */
const maxSuspects = 100;

/** The stream whose client warms clusters. */
export interface WarmingStream {
  readonly references: ResourceReferences;
  sentOf(typeUrl: string): SentResources;
}

/** A CDS response that is on its way. */
export interface SentResponse {
  readonly order: ResponseOrder;
  readonly selection: Selection;
  readonly nonce: string;
  /** No other one was sent on the stream before. */
  readonly isFirst: boolean;
  /** Clusters that the client has in an earlier form, and that it may warm without end. */
  readonly updated: readonly string[];
}

/** What a response says of clusters that the client does not have yet as they are sent. */
export function clustersSent(
  stream: WarmingStream,
  rollout: Rollout,
  { order, selection, nonce, isFirst, updated }: SentResponse,
): ClustersSent {
  const sent = stream.sentOf(clusterType);
  const isKnown = !isFirst || order.has !== undefined || order.returning !== undefined;
  const { added: names } = selection;
  const isResumed = isFirst && order.has !== undefined;
  const all = isResumed ? resumedClusters(stream, rollout, order, sent, names) : updated;
  const contained = selection.changed === 'all' ? undefined : new Set(selection.changed);
  const isContained = (name: string): boolean => contained?.has(name) ?? true;
  const limited = new Set(rollout.givenUp.map(({ name }) => name));
  const namesOf = (isWanted: (cluster: NewCluster) => boolean): readonly string[] =>
    rollout.newClusters.filter(isWanted).map(({ name }) => name);
  const changed = namesOf(({ name, state }) => state === 'abandoned' && sent.has(name));
  return {
    nonce,
    added: isKnown ? addedClusters(stream, rollout, order, sent, names) : [],
    updated: [...all, ...changed].filter((name) => isContained(name) && !limited.has(name)),
    sentAgain: namesOf(({ state }) => state === 'rejected').filter(isContained),
    absent: namesOf(({ name, state }) => state === 'unsent' && (name === anyCluster || !isKnown || !sent.has(name))),
  };
}

/** Clusters that a response has and that the client did not have before. @param names of these */
function addedClusters(
  stream: WarmingStream,
  rollout: Rollout,
  order: ResponseOrder,
  sent: SentResources,
  names: readonly string[],
): SentCluster[] {
  const { references } = stream;
  if (order.returning !== undefined) return [{ name: anyCluster, needs: 'acknowledgement', assignment: '' }];
  const has = new Set(order.has?.names);
  const isFetched = fetchedSecrets(references, rollout, sent, names);
  return names
    .filter((name) => !has.has(name))
    .map((name) => {
      const { after, assignment, secrets } = references.usabilityOf(sent.get(name)!);
      // In delta, Envoy does not request endpoints that it has for another cluster, and waits until they are sent again.
      if (assignment !== name) stream.sentOf(endpointType).forget([assignment]);
      if (![...secrets].every(isFetched) || after === 'warming') return { name, assignment, needs: 'acknowledgement' };
      return { name, assignment, needs: after === 'at once' ? 'nothing' : 'assignment' };
    });
}

/** Clusters that a client brings from another stream in an earlier form, and that fetch secrets which no other cluster does. */
function resumedClusters(
  { references }: WarmingStream,
  rollout: Rollout,
  order: ResponseOrder,
  sent: SentResources,
  names: readonly string[],
): readonly string[] {
  const has = new Set(order.has?.names);
  const updated = names.filter((name) => has.has(name));
  if (updated.length === 0 || updated.length > maxInspectedUpdates) return [];
  const isFetched = fetchedSecrets(references, rollout, sent, names);
  return updated.filter((name) => ![...references.secretsOf(sent.get(name)!)].every(isFetched));
}

/** Whether a cluster that the client uses has fetched a secret. @param names clusters that it may not use yet */
function fetchedSecrets(
  { secretsOf }: ResourceReferences,
  { newClusters }: Rollout,
  { resources }: SentResources,
  names: readonly string[],
): (secret: string) => boolean {
  const unused = new Set([...names, ...newClusters.map(({ name }) => name)]);
  // Thousands of clusters name the same secrets: for each of these all clusters are searched once.
  return onceForName((secret) => {
    for (const cluster of resources.values()) {
      if (!unused.has(cluster.name) && secretsOf(cluster).has(secret)) return true;
    }
    return false;
  });
}

function onceForName(find: (name: string) => boolean): (name: string) => boolean {
  const found = new Map<string, boolean>();
  return (name) => {
    const known = found.get(name) ?? find(name);
    found.set(name, known);
    return known;
  };
}

/** Clusters that a client has, and whose new form fetches a secret that none of its clusters fetched; found once for two maps. */
export const updatesThatFetch = onceFor((references: ResourceReferences) =>
  onceForPair((before: ResourceMap, after: ResourceMap): readonly string[] => {
    const { changed, added } = differenceOf(before, after);
    if (changed.length === added.length || changed.length - added.length > maxInspectedUpdates) return [];
    const isFetched = onceForName((secret) => {
      for (const cluster of before.values()) if (references.secretsOf(cluster).has(secret)) return true;
      return false;
    });
    const isNew = new Set(added);
    return changed.filter((name) => {
      if (isNew.has(name)) return false;
      const known = references.secretsOf(before.get(name)!);
      return [...references.secretsOf(after.get(name)!)].some((secret) => !known.has(secret) && !isFetched(secret));
    });
  }),
);

/** Of all clusters of a client, those that may wait for a secret without end; none if there are too many to tell. */
export function suspectsAmong({ secretsOf }: ResourceReferences, clusters: ResourceMap): readonly string[] {
  const suspects: string[] = [];
  for (const cluster of clusters.values()) {
    if (secretsOf(cluster).size === 0) continue;
    if (suspects.length === maxSuspects) return [];
    suspects.push(cluster.name);
  }
  return suspects;
}

/** Clusters that were given up are sent with a limit for what Envoy fetches. @param sent what the client has */
export function withFetchLimits(
  references: ResourceReferences,
  { givenUp }: Rollout,
  { version, resources }: ResourceSet,
  sent: ResourceMap,
): ResourceSet {
  const limited = givenUp.flatMap(({ name, isNew }) => {
    const cluster = resources.get(name);
    return cluster === undefined
      ? []
      : [references.withFetchLimit(cluster, isNew ? newClusterLimit : updatedClusterLimit)];
  });
  return { version, resources: LayeredResources.over(resources, limited, [], sent) };
}

/** Clusters that are read in one step. */
const clustersAtATime = 32;

/** Finds out when Envoy can use each of these clusters: the results are remembered for all streams. */
export function* readingUsability(
  references: ResourceReferences,
  clusters: ResourceMap,
  names: readonly string[],
): Steps<void> {
  for (const [index, name] of names.entries()) {
    references.usabilityOf(clusters.get(name)!);
    if (index % clustersAtATime === clustersAtATime - 1) yield;
  }
}

/** Likewise, which clusters each of these resources names. */
export function* readingNames(
  references: ResourceReferences,
  resources: ResourceMap,
  names: readonly string[],
): Steps<void> {
  for (const name of names) {
    references.namesAmong(resources.get(name)!, noClusters);
    yield;
  }
}

const noClusters: ReadonlySet<string> = new Set();
