/**
 * The limit of a wait: what waits for a cluster is sent, and the cluster is given up, not the client. It is sent again with a time
 * limit for what it fetches: Envoy then uses it without that, and acknowledges clusters again (measured with Envoy 1.40 in both
 * protocols). A cluster that is sent without a time limit would keep all clusters of the client unacknowledged.
 */
import { anyCluster, type GivenUpCluster, type NewCluster, type Rollout, settled } from './cluster-rollout.ts';

/** Version of a cluster as it is configured; `undefined`: there is none. */
export type VersionOf = (name: string) => string | undefined;

/** Clusters of a client that may never become usable, of which it does not say which one it warms. */
export type Suspects = {
  /** They fetch a secret that the client requests and that does not exist. */
  certain: readonly string[];
  /** They fetch a secret, the most likely first. */
  possible: readonly string[];
};

export type NextSuspects = {
  names: readonly string[];
  /** The client is likely to acknowledge clusters when it has waited for these: others are given up later. */
  areCertain: boolean;
};

/**
 * Of possible suspects, so many are given up at first, and then as many as before with each limit that passes: a client that is only
 * slow is not sent all of its clusters again.
 */
export const firstSuspects = 100;

/** A step of the limit has passed. Clusters that have none left are given up: what waits for them is sent. */
export function afterLimitStep(rollout: Rollout, versionOf: VersionOf): Rollout {
  const expired = rollout.newClusters.filter(isExpiring);
  const newClusters = rollout.newClusters.map((cluster): NewCluster => {
    if (cluster.stepsLeft === 0) return cluster;
    const stepsLeft = cluster.stepsLeft - 1;
    return stepsLeft === 0 ? { ...cluster, stepsLeft, state: 'abandoned' } : { ...cluster, stepsLeft };
  });
  const left = newClusters.filter(({ name, state, nonce }) => state !== 'abandoned' || nonce || name === anyCluster);
  const sent = expired.filter(({ state }) => state === 'sent' || state === 'updating');
  const givenUp = withGivenUp(
    rollout.givenUp,
    sent.filter(({ name }) => name !== anyCluster).map(({ name, state }) => ({ name, isNew: state === 'sent' })),
    versionOf,
  );
  return settled({ ...rollout, newClusters: left, givenUp });
}

function withGivenUp(
  givenUp: readonly GivenUpCluster[],
  clusters: readonly Omit<GivenUpCluster, 'version'>[],
  versionOf: VersionOf,
): readonly GivenUpCluster[] {
  const known = new Set(givenUp.map(({ name }) => name));
  const added = clusters.flatMap(({ name, isNew }): GivenUpCluster[] => {
    const version = known.has(name) ? undefined : versionOf(name);
    return version === undefined ? [] : [{ name, version, isNew }];
  });
  return added.length === 0 ? givenUp : [...givenUp, ...added];
}

/** Whether the next CDS response gives up clusters that may be the reason why the client acknowledges none. */
export function isSearching({ newClusters }: Rollout): boolean {
  return newClusters.some(({ name, state }) => name === anyCluster && state === 'abandoned');
}

/**
 * The suspects that the next CDS response gives up. While there are certain ones, others are not: Envoy replaces each cluster that is sent
 * again, and resets the calls of filters (authorization checks, mirrored requests) that use it.
 */
export function nextSuspects({ givenUp }: Rollout, { certain, possible }: Suspects): NextSuspects {
  const known = new Set(givenUp.map(({ name }) => name));
  const isUnknown = (name: string): boolean => !known.has(name);
  const next = certain.filter(isUnknown);
  if (next.length > 0) return { names: next, areCertain: true };
  return { names: possible.filter(isUnknown).slice(0, Math.max(firstSuspects, givenUp.length)), areCertain: false };
}

/** A CDS response is made while {@link isSearching}. If there are no suspects left, the search is over. */
export function withSuspects(rollout: Rollout, suspects: readonly string[], versionOf: VersionOf): Rollout {
  const clusters = suspects.map((name) => ({ name, isNew: false }));
  const givenUp = withGivenUp(rollout.givenUp, clusters, versionOf);
  if (givenUp !== rollout.givenUp) return { ...rollout, givenUp };
  return settled({ ...rollout, newClusters: rollout.newClusters.filter(({ name }) => name !== anyCluster) });
}

/** The clusters that the next step of the limit gives up. */
export function expiringClusters({ newClusters }: Rollout): readonly string[] {
  return newClusters.filter(isExpiring).map(({ name }) => name);
}

function isExpiring({ stepsLeft }: NewCluster): boolean {
  return stepsLeft === 1;
}

/** A cluster whose configuration has changed is no longer given up. @param versionOf a cluster as it is configured now */
export function withConfiguration(rollout: Rollout, versionOf: VersionOf): Rollout {
  const givenUp = rollout.givenUp.filter(({ name, version }) => versionOf(name) === version);
  return givenUp.length === rollout.givenUp.length ? rollout : { ...rollout, givenUp };
}

/** Names that are given up in the next record and not in the one before. */
export function givenUpBetween(before: Rollout, next: Rollout): readonly string[] {
  if (before.givenUp === next.givenUp) return [];
  const known = new Set(before.givenUp.map(({ name }) => name));
  return next.givenUp.filter(({ name }) => !known.has(name)).map(({ name }) => name);
}
