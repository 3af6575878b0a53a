/**
 * Make before break: which clusters one client has and can use, as one plain record, and the rules by which it changes. Routes
 * and listeners that name a cluster which the client cannot use yet are held back until it can, or until a limit. At rest the
 * record is empty. A record is never changed in place.
 *
 * Facts: Envoy acknowledges CDS when no cluster warms any more, and reads one stream in order (spec/make-before-break.md §1).
 */
import type { AdsRequest, RetentionState } from './ads-protocol.ts';
import { extensionType, listenerType, routeType } from './ads-types.ts';
import type { Watch } from './watch-record.ts';

/** A cluster that the client does not have yet as it was sent. */
export type NewCluster = {
  /** Its name, or {@link anyCluster}. */
  name: string;
  /**
   * `unsent`: a held resource names it, and no CDS response contains it yet. `sent`: the client may be warming it.
   * `updating`: the client uses an earlier form of it, and may be warming this one; nothing waits for it.
   * `rejected`: the client does not have it. `abandoned`: the limit has passed; no resource waits for it any more. Of
   * {@link anyCluster}: the clusters that may be the reason are given up, more of them with each CDS response.
   */
  state: 'unsent' | 'sent' | 'updating' | 'rejected' | 'abandoned';
  /** What makes it usable: the EDS response that contains its assignment, or the acknowledgement of its CDS response. */
  needs: 'assignment' | 'acknowledgement';
  /** Name of its ClusterLoadAssignment. */
  assignment: string;
  /** Of the CDS response that contains it; empty while unsent. */
  nonce: string;
  /** Steps of the limit that are left to it; 0: no resource waits for it, and Envoy's acknowledgement does not depend on it. */
  stepsLeft: number;
};

/**
 * A cluster that the client did not acknowledge within the limit. While one cluster warms, Envoy acknowledges none, and after a
 * reconnect it requests none: it is sent again with a time limit for what it fetches, until its configuration changes.
 */
export type GivenUpCluster = {
  name: string;
  /** Version of the cluster as it is configured. */
  version: string;
  /** The client uses no earlier form of it. */
  isNew: boolean;
};

/** A listener, route configuration or extension configuration that is held back. */
export type HeldResource = {
  typeUrl: string;
  name: string;
  /** Names of the clusters that it waits for; none: it can be sent. */
  clusters: readonly string[];
};

/** A cluster that is no longer configured and that the client keeps (cluster-removal.ts). */
export type RetainedCluster = {
  name: string;
  /**
   * `named`: a listener or route that the client was sent names it. `unacknowledged`: none does, and the client has not
   * acknowledged that. `lingering`: requests may still use it. `removable`: the next CDS response removes it, whatever it is
   * sent for.
   */
  state: RetentionState;
  /** Types whose acknowledgement is waited for. */
  unacknowledged: readonly string[];
  /** Steps of the removal delay that are left: while it is lingering, and then for a response that is sent for something else. */
  stepsLeft: number;
  /** While it is lingering: a listener that was replaced names it, and drains its connections. Absent: none does. */
  drains?: true;
};

export type Rollout = {
  /** In the order in which they were sent. */
  newClusters: readonly NewCluster[];
  held: readonly HeldResource[];
  retained: readonly RetainedCluster[];
  givenUp: readonly GivenUpCluster[];
};

/** Stands for all clusters: which of them the client has is not known. */
export const anyCluster = '*';

/** The limit of a wait passes in so many steps: a wait that begins during another one ends within the limit as well. */
export const stepsOfLimit = 2;

export const newRollout: Rollout = { newClusters: [], held: [], retained: [], givenUp: [] };

/** Whether a record is as {@link newRollout}, which clients share. */
export function isAtRest({ newClusters, held, retained, givenUp }: Rollout): boolean {
  return newClusters.length + held.length + retained.length + givenUp.length === 0;
}

const gatedTypes: ReadonlySet<string> = new Set([listenerType, routeType, extensionType]);

/** Whether resources of the type name clusters, and are held back. */
export function isGated(typeUrl: string): boolean {
  return gatedTypes.has(typeUrl);
}

/** A cluster that a CDS response has and that the client did not have before. */
export type SentCluster = Pick<NewCluster, 'name' | 'assignment'> & { needs: NewCluster['needs'] | 'nothing' };

/** What a CDS response says of new clusters. */
export type ClustersSent = {
  nonce: string;
  added: readonly SentCluster[];
  /** Names of clusters that the client has in an earlier form, and whose new form may not become usable. */
  updated: readonly string[];
  /** Steps of the limit until more suspects are given up; 0: the limit. */
  searchSteps: number;
  /** Clusters that the response contains again, before the client could use them: in the form that it has them now. */
  sentAgain: readonly SentCluster[];
  /** Names that were unsent, and that neither this response nor an earlier one contains. */
  absent: readonly string[];
};

/** The names that hold back a resource which names them. */
export function unusableClusters({ newClusters }: Rollout): readonly string[] {
  return newClusters.filter(isUnusable).map(({ name }) => name);
}

function isUnusable({ state }: NewCluster): boolean {
  return state !== 'abandoned' && state !== 'updating';
}

/** Whether the limit runs for a cluster: a resource waits for it, or the client's acknowledgement of all clusters depends on it. */
export function isLimitRunning({ newClusters }: Rollout): boolean {
  return newClusters.some(({ stepsLeft }) => stepsLeft > 0);
}

/** The clusters for which the limit runs. */
export function limitedClusters({ newClusters }: Rollout): readonly string[] {
  return newClusters.filter(({ stepsLeft }) => stepsLeft > 0).map(({ name }) => name);
}

/** Whether a resource waits for a cluster. */
export function isWaiting({ held }: Rollout): boolean {
  return held.some(({ clusters }) => clusters.length > 0);
}

/** The resources of a type that are held back and can be sent. */
export function readyResources({ held }: Rollout, typeUrl: string): readonly string[] {
  return held.filter((one) => one.typeUrl === typeUrl && one.clusters.length === 0).map(({ name }) => name);
}

/** The clusters that resources of a type wait for. */
export function awaitedClusters({ held }: Rollout, typeUrl?: string): readonly string[] {
  const ofType = typeUrl === undefined ? held : held.filter((one) => one.typeUrl === typeUrl);
  return ofType.length === 0 ? [] : [...new Set(ofType.flatMap(({ clusters }) => clusters))];
}

/** The client has clusters and requests none: an Envoy that connects again while a cluster warms. */
export function withUnknownClusters(rollout: Rollout): Rollout {
  if (rollout.newClusters.some(({ name }) => name === anyCluster)) return rollout;
  return settled({ ...rollout, newClusters: [...rollout.newClusters, unsent(anyCluster)] });
}

function unsent(name: string): NewCluster {
  return { name, state: 'unsent', needs: 'acknowledgement', assignment: '', nonce: '', stepsLeft: 0 };
}

/** A CDS response was sent. */
export function withClustersSent(
  rollout: Rollout,
  { nonce, added, updated, searchSteps, sentAgain, absent }: ClustersSent,
): Rollout {
  if (added.length + updated.length + sentAgain.length + absent.length === 0) return rollout;
  const before = new Map(rollout.newClusters.map((cluster) => [cluster.name, cluster]));
  const updating = updated.filter((name) => isUpdatable(before.get(name)));
  const gone = new Set([...absent, ...updating]);
  for (const { name } of added) gone.add(name);
  const again = new Map(sentAgain.map((cluster) => [cluster.name, cluster]));
  const kept = rollout.newClusters
    .filter(({ name }) => !gone.has(name))
    .flatMap((cluster) => {
      const form = again.get(cluster.name);
      return form === undefined ? [cluster] : sentInForm(cluster, form, nonce);
    });
  const sent = added.flatMap(({ name, needs, assignment }): NewCluster[] => {
    const stepsLeft = before.get(name)?.stepsLeft ?? 0;
    return needs === 'nothing' ? [] : [{ name, state: 'sent', needs, assignment, nonce, stepsLeft }];
  });
  const needs = 'acknowledgement';
  for (const name of updating) {
    const stepsLeft = name === anyCluster ? searchSteps : 0;
    sent.push({ name, state: 'updating', needs, assignment: '', nonce, stepsLeft });
  }
  return settled({ ...rollout, newClusters: [...kept, ...sent] });
}

/** A cluster that the client does not use yet is sent in another form, which replaces the one that it warms or has rejected. */
function sentInForm(cluster: NewCluster, { needs, assignment }: SentCluster, nonce: string): NewCluster[] {
  if (cluster.state === 'rejected')
    return needs === 'nothing' ? [] : [{ ...cluster, state: 'sent', needs, assignment, nonce }];
  // The acknowledgement of the response with the first form comes when one of both is usable.
  if (cluster.needs === 'acknowledgement' || needs === 'nothing') return [cluster];
  return [{ ...cluster, needs, assignment }];
}

/** A cluster that the client warms for the first time is no update: {@link sentInForm}. */
function isUpdatable(known: NewCluster | undefined): boolean {
  return known === undefined || known.state === 'abandoned' || known.state === 'updating';
}

/** An EDS response was sent. @param assignments that it contains */
export function withAssignmentsSent(rollout: Rollout, assignments: (name: string) => boolean): Rollout {
  return without(
    rollout,
    ({ state, needs, assignment }) => state === 'sent' && needs === 'assignment' && assignments(assignment),
  );
}

/** The client has answered a CDS response. @param watch of clusters, before the request */
export function withClustersAnswered(rollout: Rollout, request: AdsRequest, watch: Watch | undefined): Rollout {
  const { nonce, rejection } = request;
  if (rollout.newClusters.length === 0 || nonce === '' || nonce === watch?.nonceRejected) return rollout;
  const answered = answeredBy(rollout, request, watch);
  if (answered === 0) return rollout;
  if (rejection === null) return without(rollout, ({ nonce }, index) => nonce !== '' && index < answered);
  // Envoy takes all that its rejection does not name.
  const rejected = rollout.newClusters.map((cluster, index): NewCluster => {
    const isRejected = index < answered && cluster.nonce !== '' && isNamedIn(rejection, cluster.name);
    return isRejected && isUnusable(cluster) ? { ...cluster, state: 'rejected' } : cluster;
  });
  // The client keeps the earlier form of an update that it rejects.
  return without(
    { ...rollout, newClusters: rejected },
    ({ name, state, nonce }, index) =>
      nonce !== '' && index < answered && (state === 'updating' || !isNamedIn(rejection, name)),
  );
}

/**
 * The client has rejected clusters of a response of which it is not known what is new to it ({@link anyCluster}): it does not have those
 * that its rejection names. What waits for all clusters is not sent, but prepared again.
 *
 * @param sent names of all clusters that the response contained
 */
export function withUnknownRejected(
  rollout: Rollout,
  { nonce, rejection }: AdsRequest,
  watch: Watch | undefined,
  sent: Iterable<string>,
): Rollout {
  if (rejection === null || nonce === '' || nonce !== watch?.nonceSent || nonce === watch.nonceRejected) return rollout;
  if (!rollout.newClusters.some(({ name, state }) => name === anyCluster && state === 'sent')) return rollout;
  const known = new Set(rollout.newClusters.map(({ name }) => name));
  const names = [...sent].filter((name) => !known.has(name) && isNamedIn(rejection, name));
  if (names.length === 0) return rollout;
  const next = withClustersGone(rollout, [anyCluster]);
  const rejected = names.map((name): NewCluster => ({ ...unsent(name), state: 'rejected', nonce }));
  return { ...next, newClusters: [...next.newClusters, ...rejected] };
}

/** How many of the new clusters, from the first one, the request answers. */
function answeredBy({ newClusters }: Rollout, { protocol, nonce }: AdsRequest, watch: Watch | undefined): number {
  if (nonce === watch?.nonceSent) return newClusters.length;
  // A state-of-the-world client answers the newest response for all before it; in delta it answers each, in order.
  return protocol === 'sotw' ? 0 : newClusters.findLastIndex((cluster) => cluster.nonce === nonce) + 1;
}

/** Envoy: `Error adding/updating cluster(s) NAME: MESSAGE, NAME: MESSAGE`. A message may contain `, ` as well. */
function isNamedIn(rejection: string, name: string): boolean {
  for (let at = rejection.indexOf(`${name}: `); at >= 0; at = rejection.indexOf(`${name}: `, at + 1)) {
    const before = rejection[at - 1];
    if (before === undefined || before === ' ') return true;
  }
  return false;
}

/**
 * Resources of a type were looked at.
 *
 * @param looked whether a resource was: what was held of it no longer counts
 * @param held those that wait, with the clusters for which they do
 * @param notSent of these clusters, those that no CDS response contains yet
 */
export function withHeld(
  rollout: Rollout,
  looked: (resource: HeldResource) => boolean,
  held: readonly HeldResource[],
  notSent: readonly string[],
): Rollout {
  const kept = rollout.held.some(looked) ? rollout.held.filter((one) => !looked(one)) : rollout.held;
  if (held.length === 0 && kept === rollout.held) return rollout;
  // The limit of a wait begins with the wait, however long the cluster has been warming.
  const awaited = new Set(awaitedClusters(rollout));
  const begun = new Set(held.flatMap(({ clusters }) => clusters).filter((name) => !awaited.has(name)));
  const restarted = rollout.newClusters.map((cluster) =>
    begun.has(cluster.name) && cluster.stepsLeft > 0 ? { ...cluster, stepsLeft: 0 } : cluster,
  );
  const known = new Set(restarted.map(({ name }) => name));
  const added = notSent.filter((name) => !known.has(name)).map(unsent);
  return settled({ ...rollout, newClusters: [...restarted, ...added], held: [...kept, ...held] });
}

/**
 * Clusters that the client was sent are no longer configured, and their endpoints are not known any more: what waits for them is
 * not sent, but looked at again as it is now.
 */
export function withClustersGone(rollout: Rollout, names: readonly string[]): Rollout {
  const gone = new Set(names);
  const newClusters = rollout.newClusters.filter(({ name }) => !gone.has(name));
  if (newClusters.length === rollout.newClusters.length) return rollout;
  const held = rollout.held.filter(({ clusters }) => !clusters.some((name) => gone.has(name)));
  return settled({ ...rollout, newClusters, held });
}

/**
 * A client that connected again requests endpoints of clusters that are no longer configured: what waits for all clusters may name them.
 * It is not sent, but looked at again as it is now.
 */
export function withUnknownGone(rollout: Rollout): Rollout {
  const held = rollout.held.filter(({ clusters }) => !clusters.includes(anyCluster));
  return held.length === rollout.held.length ? rollout : settled({ ...rollout, held });
}

function without(rollout: Rollout, usable: (cluster: NewCluster, index: number) => boolean): Rollout {
  const newClusters = rollout.newClusters.filter((cluster, index) => !usable(cluster, index));
  return newClusters.length === rollout.newClusters.length ? rollout : settled({ ...rollout, newClusters });
}

/**
 * Nothing waits for a cluster that is usable. A cluster that something waits for has a limit, as has one that may keep the client
 * from acknowledging all others.
 */
export function settled(rollout: Rollout): Rollout {
  const { newClusters, held } = rollout;
  const unusable = new Set(newClusters.filter(isUnusable).map(({ name }) => name));
  const waiting = held.map((one): HeldResource => {
    const clusters = one.clusters.filter((name) => unusable.has(name));
    return clusters.length === one.clusters.length ? one : { ...one, clusters };
  });
  const awaited = new Set(waiting.flatMap(({ clusters }) => clusters));
  const limited = newClusters.flatMap((cluster): NewCluster[] => {
    const isAwaited = awaited.has(cluster.name);
    // Nothing is known of a cluster that was not sent but that something waits for it.
    if (!isAwaited && cluster.state === 'unsent' && cluster.name !== anyCluster) return [];
    const stepsLeft = isAwaited || delaysAcknowledgement(cluster) ? cluster.stepsLeft || stepsOfLimit : 0;
    return [stepsLeft === cluster.stepsLeft ? cluster : { ...cluster, stepsLeft }];
  });
  return { ...rollout, newClusters: limited, held: waiting };
}

function delaysAcknowledgement({ name, state, needs }: NewCluster): boolean {
  if (name === anyCluster && state === 'unsent') return true;
  return state === 'updating' || (state === 'sent' && needs === 'acknowledgement');
}
