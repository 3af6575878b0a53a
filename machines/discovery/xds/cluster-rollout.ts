/**
 * Make before break: the clusters that one client has and can use, as a plain record, and the rules by which it changes. Routes and listeners that
 * name a cluster which the client cannot use yet are held until it can, or until a limit.
 *
 * Envoy acknowledges CDS when no cluster is warming, and reads one stream in order.
 */
import type { AdsRequest, RetentionState } from './ads-protocol.ts';
import { extensionType, listenerType, routeType } from './ads-types.ts';
import type { Watch } from './watch-record.ts';

/** A cluster of which the client does not use the newest version yet. */
export type NewCluster = {
  /** Name, or {@link anyCluster}. */
  name: string;
  /**
   * `unsent`: a held resource names it, and no CDS response contains it yet. `sent`: the client may be warming it. `updating`: the client
   * uses an earlier version and may be warming this one; no resource waits. `rejected`: the client does not have it. `abandoned`: the limit
   * has passed; no resource waits. For {@link anyCluster}: the possible causes are abandoned, more with each CDS response.
   */
  state: 'unsent' | 'sent' | 'updating' | 'rejected' | 'abandoned';
  /** Event after which the cluster is usable: an EDS response with its assignment, or the acknowledgement of its CDS response. */
  needs: 'assignment' | 'acknowledgement';
  assignment: string;
  /** Nonce of its CDS response; empty while unsent. */
  nonce: string;
  /** Remaining steps of the limit. 0: no resource waits for it, and Envoy's acknowledgement does not depend on it. */
  stepsLeft: number;
};

/**
 * A cluster that the client did not acknowledge within the limit. While a cluster warms, Envoy acknowledges none, and after a reconnect it
 * requests none. The cluster is sent again with a limit for what it fetches, until its configuration changes.
 */
export type GivenUpCluster = {
  name: string;
  version: string;
  /** Whether the client uses no earlier version of it. */
  isNew: boolean;
};

/** Listener, route configuration or extension configuration. */
export type HeldResource = {
  typeUrl: string;
  name: string;
  /** Clusters that the resource waits for; if empty, the resource can be sent. */
  clusters: readonly string[];
};

/** A cluster that is no longer configured and that the client keeps (cluster-removal.ts). */
export type RetainedCluster = {
  name: string;
  state: RetentionState;
  unacknowledged: readonly string[];
  /** Remaining steps of the removal delay, and then of the wait for a CDS response that has another reason. */
  stepsLeft: number;
  /** While lingering: a replaced listener that names the cluster drains its connections. */
  drains?: true;
};

export type Rollout = {
  /** In the order in which they were sent. */
  newClusters: readonly NewCluster[];
  held: readonly HeldResource[];
  retained: readonly RetainedCluster[];
  givenUp: readonly GivenUpCluster[];
};

/** Represents all clusters of a client if they are unknown. */
export const anyCluster = '*';

/** Number of steps of the limit, so that a wait that begins during another one also ends within the limit. */
export const stepsOfLimit = 2;

export const newRollout: Rollout = { newClusters: [], held: [], retained: [], givenUp: [] };

/** Whether a record equals {@link newRollout}, which clients share. */
export function isIdle({ newClusters, held, retained, givenUp }: Rollout): boolean {
  return newClusters.length + held.length + retained.length + givenUp.length === 0;
}

const gatedTypes: ReadonlySet<string> = new Set([listenerType, routeType, extensionType]);

export function isGated(typeUrl: string): boolean {
  return gatedTypes.has(typeUrl);
}

/** A cluster of a CDS response that is new to the client. */
export type SentCluster = Pick<NewCluster, 'name' | 'assignment'> & { needs: NewCluster['needs'] | 'nothing' };

export type ClustersSent = {
  nonce: string;
  added: readonly SentCluster[];
  /** Clusters that the client has in an earlier version, and whose new version may not become usable. */
  updated: readonly string[];
  /** Steps of the limit until more suspects are abandoned; 0: the complete limit. */
  searchSteps: number;
  /** Clusters that are sent again before the client could use them, in their current version. */
  sentAgain: readonly SentCluster[];
  /** Names that were unsent and are in neither this response nor an earlier one. */
  absent: readonly string[];
};

/** Clusters that the client cannot use yet, so that resources are held for them. */
export function unusableClusters({ newClusters }: Rollout): readonly string[] {
  return newClusters.filter(isUnusable).map(({ name }) => name);
}

function isUnusable({ state }: NewCluster): boolean {
  return state !== 'abandoned' && state !== 'updating';
}

/** Whether a resource waits for a cluster, or the acknowledgement of all clusters depends on one. */
export function isLimitRunning({ newClusters }: Rollout): boolean {
  return newClusters.some(({ stepsLeft }) => stepsLeft > 0);
}

export function limitedClusters({ newClusters }: Rollout): readonly string[] {
  return newClusters.filter(({ stepsLeft }) => stepsLeft > 0).map(({ name }) => name);
}

export function hasWaitingResources({ held }: Rollout): boolean {
  return held.some(({ clusters }) => clusters.length > 0);
}

export function readyResources({ held }: Rollout, typeUrl: string): readonly string[] {
  return held.filter((one) => one.typeUrl === typeUrl && one.clusters.length === 0).map(({ name }) => name);
}

export function awaitedClusters({ held }: Rollout, typeUrl?: string): readonly string[] {
  const heldOfType = typeUrl === undefined ? held : held.filter((one) => one.typeUrl === typeUrl);
  return heldOfType.length === 0 ? [] : [...new Set(heldOfType.flatMap(({ clusters }) => clusters))];
}

/** For a client that has clusters but requests none: an Envoy that reconnects while a cluster warms. */
export function withUnknownClusters(rollout: Rollout): Rollout {
  if (rollout.newClusters.some(({ name }) => name === anyCluster)) return rollout;
  return settleRollout({ ...rollout, newClusters: [...rollout.newClusters, unsentCluster(anyCluster)] });
}

function unsentCluster(name: string): NewCluster {
  return { name, state: 'unsent', needs: 'acknowledgement', assignment: '', nonce: '', stepsLeft: 0 };
}

export function withClustersSent(
  rollout: Rollout,
  { nonce, added, updated, searchSteps, sentAgain, absent }: ClustersSent,
): Rollout {
  if (added.length + updated.length + sentAgain.length + absent.length === 0) return rollout;
  const clusterByName = new Map(rollout.newClusters.map((cluster) => [cluster.name, cluster]));
  const updatingNames = updated.filter((name) => isUpdatable(clusterByName.get(name)));
  const replacedNames = new Set([...absent, ...updatingNames]);
  for (const { name } of added) replacedNames.add(name);
  const resentByName = new Map(sentAgain.map((cluster) => [cluster.name, cluster]));
  const keptClusters = rollout.newClusters
    .filter(({ name }) => !replacedNames.has(name))
    .flatMap((cluster) => {
      const form = resentByName.get(cluster.name);
      return form === undefined ? [cluster] : clustersAfterResend(cluster, form, nonce);
    });
  const sentClusters = added.flatMap(({ name, needs, assignment }): NewCluster[] => {
    const stepsLeft = clusterByName.get(name)?.stepsLeft ?? 0;
    return needs === 'nothing' ? [] : [{ name, state: 'sent', needs, assignment, nonce, stepsLeft }];
  });
  const needs = 'acknowledgement';
  for (const name of updatingNames) {
    const stepsLeft = name === anyCluster ? searchSteps : 0;
    sentClusters.push({ name, state: 'updating', needs, assignment: '', nonce, stepsLeft });
  }
  return settleRollout({ ...rollout, newClusters: [...keptClusters, ...sentClusters] });
}

/** A cluster that the client does not use yet is sent in another version, which replaces the one that it warms or rejected. */
function clustersAfterResend(cluster: NewCluster, { needs, assignment }: SentCluster, nonce: string): NewCluster[] {
  if (cluster.state === 'rejected')
    return needs === 'nothing' ? [] : [{ ...cluster, state: 'sent', needs, assignment, nonce }];
  // The acknowledgement of the response with the first version arrives when either version is usable.
  if (cluster.needs === 'acknowledgement' || needs === 'nothing') return [cluster];
  return [{ ...cluster, needs, assignment }];
}

/** False for a cluster that the client warms for the first time, see {@link clustersAfterResend}. */
function isUpdatable(knownCluster: NewCluster | undefined): boolean {
  return knownCluster === undefined || knownCluster.state === 'abandoned' || knownCluster.state === 'updating';
}

export function withAssignmentsSent(rollout: Rollout, assignments: (name: string) => boolean): Rollout {
  return removeClusters(
    rollout,
    ({ state, needs, assignment }) => state === 'sent' && needs === 'assignment' && assignments(assignment),
  );
}

/** @param watch subscription of clusters before the request */
export function withClustersAcknowledged(rollout: Rollout, request: AdsRequest, watch: Watch | undefined): Rollout {
  const { nonce, rejection } = request;
  if (rollout.newClusters.length === 0 || nonce === '' || nonce === watch?.nonceRejected) return rollout;
  const acknowledgedRollout = countAcknowledged(rollout, request, watch);
  if (acknowledgedRollout === 0) return rollout;
  if (rejection === null)
    return removeClusters(rollout, ({ nonce }, index) => nonce !== '' && index < acknowledgedRollout);
  // Envoy applies all clusters that its rejection does not name.
  const rejectedClusters = rollout.newClusters.map((cluster, index): NewCluster => {
    const isRejected = index < acknowledgedRollout && cluster.nonce !== '' && isNamedIn(rejection, cluster.name);
    return isRejected && isUnusable(cluster) ? { ...cluster, state: 'rejected' } : cluster;
  });
  // After a rejected update, the client keeps the previous version of the cluster.
  return removeClusters(
    { ...rollout, newClusters: rejectedClusters },
    ({ name, state, nonce }, index) =>
      nonce !== '' && index < acknowledgedRollout && (state === 'updating' || !isNamedIn(rejection, name)),
  );
}

/**
 * The client has rejected clusters of a response with {@link anyCluster}: it does not have those that its rejection names. Resources that
 * wait for all clusters are generated again.
 *
 * @param sentNames names of all clusters in the response
 */
export function withUnknownRejected(
  rollout: Rollout,
  { nonce, rejection }: AdsRequest,
  watch: Watch | undefined,
  sentNames: Iterable<string>,
): Rollout {
  if (rejection === null || nonce === '' || nonce !== watch?.nonceSent || nonce === watch.nonceRejected) return rollout;
  if (!rollout.newClusters.some(({ name, state }) => name === anyCluster && state === 'sent')) return rollout;
  const knownNames = new Set(rollout.newClusters.map(({ name }) => name));
  const names = [...sentNames].filter((name) => !knownNames.has(name) && isNamedIn(rejection, name));
  if (names.length === 0) return rollout;
  const nextRollout = withClustersRemoved(rollout, [anyCluster]);
  const rejectedClusters = names.map((name): NewCluster => ({ ...unsentCluster(name), state: 'rejected', nonce }));
  return { ...nextRollout, newClusters: [...nextRollout.newClusters, ...rejectedClusters] };
}

function countAcknowledged(
  { newClusters }: Rollout,
  { protocol, nonce }: AdsRequest,
  watch: Watch | undefined,
): number {
  if (nonce === watch?.nonceSent) return newClusters.length;
  // A state-of-the-world client acknowledges the newest response for all earlier ones; a delta client acknowledges each, in order.
  return protocol === 'sotw' ? 0 : newClusters.findLastIndex((cluster) => cluster.nonce === nonce) + 1;
}

/** Envoy: `Error adding/updating cluster(s) NAME: MESSAGE, NAME: MESSAGE`. A message may contain `, ` as well. */
function isNamedIn(rejection: string, name: string): boolean {
  for (let at = rejection.indexOf(`${name}: `); at >= 0; at = rejection.indexOf(`${name}: `, at + 1)) {
    const precedingCharacter = rejection[at - 1];
    if (precedingCharacter === undefined || precedingCharacter === ' ') return true;
  }
  return false;
}

/**
 * @param isGenerated whether a resource was generated: its earlier held state is replaced
 * @param heldResources resources that wait, with their clusters
 * @param unsentNames those of these clusters that no CDS response contains yet
 */
export function withHeld(
  rollout: Rollout,
  isGenerated: (resource: HeldResource) => boolean,
  heldResources: readonly HeldResource[],
  unsentNames: readonly string[],
): Rollout {
  const keptResources = rollout.held.some(isGenerated) ? rollout.held.filter((one) => !isGenerated(one)) : rollout.held;
  if (heldResources.length === 0 && keptResources === rollout.held) return rollout;
  // The limit begins with the wait, however long the cluster has been warming.
  const awaitedNames = new Set(awaitedClusters(rollout));
  const newlyAwaited = new Set(
    heldResources.flatMap(({ clusters }) => clusters).filter((name) => !awaitedNames.has(name)),
  );
  const restartedClusters = rollout.newClusters.map((cluster) =>
    newlyAwaited.has(cluster.name) && cluster.stepsLeft > 0 ? { ...cluster, stepsLeft: 0 } : cluster,
  );
  const knownNames = new Set(restartedClusters.map(({ name }) => name));
  const addedClusters = unsentNames.filter((name) => !knownNames.has(name)).map(unsentCluster);
  return settleRollout({
    ...rollout,
    newClusters: [...restartedClusters, ...addedClusters],
    held: [...keptResources, ...heldResources],
  });
}

/** Removes clusters that are no longer configured and whose endpoints are unknown: resources that wait for them are generated again. */
export function withClustersRemoved(rollout: Rollout, names: readonly string[]): Rollout {
  const removedNames = new Set(names);
  const newClusters = rollout.newClusters.filter(({ name }) => !removedNames.has(name));
  if (newClusters.length === rollout.newClusters.length) return rollout;
  const remainingHeldResources = rollout.held.filter(
    ({ clusters }) => !clusters.some((name) => removedNames.has(name)),
  );
  return settleRollout({ ...rollout, newClusters, held: remainingHeldResources });
}

/** A reconnected client requests endpoints of clusters that are no longer configured. Resources that wait for all clusters may name them. */
export function withUnknownRemoved(rollout: Rollout): Rollout {
  const remainingHeldResources = rollout.held.filter(({ clusters }) => !clusters.includes(anyCluster));
  return remainingHeldResources.length === rollout.held.length
    ? rollout
    : settleRollout({ ...rollout, held: remainingHeldResources });
}

function removeClusters(rollout: Rollout, isUsable: (cluster: NewCluster, index: number) => boolean): Rollout {
  const newClusters = rollout.newClusters.filter((cluster, index) => !isUsable(cluster, index));
  return newClusters.length === rollout.newClusters.length ? rollout : settleRollout({ ...rollout, newClusters });
}

/**
 * Removes waits for usable clusters, and sets the limit of clusters that resources wait for or that may prevent the acknowledgement of all
 * others.
 */
export function settleRollout(rollout: Rollout): Rollout {
  const { newClusters, held } = rollout;
  const unusableNames = new Set(newClusters.filter(isUnusable).map(({ name }) => name));
  const waitingResources = held.map((one): HeldResource => {
    const clusters = one.clusters.filter((name) => unusableNames.has(name));
    return clusters.length === one.clusters.length ? one : { ...one, clusters };
  });
  const awaitedNames = new Set(waitingResources.flatMap(({ clusters }) => clusters));
  const nextClusters = newClusters.flatMap((cluster): NewCluster[] => {
    const isAwaited = awaitedNames.has(cluster.name);
    // A cluster that was not sent has no state other than the resources that wait for it.
    if (!isAwaited && cluster.state === 'unsent' && cluster.name !== anyCluster) return [];
    const stepsLeft = isAwaited || delaysAcknowledgement(cluster) ? cluster.stepsLeft || stepsOfLimit : 0;
    return [stepsLeft === cluster.stepsLeft ? cluster : { ...cluster, stepsLeft }];
  });
  return { ...rollout, newClusters: nextClusters, held: waitingResources };
}

function delaysAcknowledgement({ name, state, needs }: NewCluster): boolean {
  if (name === anyCluster && state === 'unsent') return true;
  return state === 'updating' || (state === 'sent' && needs === 'acknowledgement');
}
