/**
 * When the limit of a wait has passed, the cluster is abandoned, and resources that wait for it are sent. The cluster is sent again with a time limit
 * for its dependencies: Envoy then uses it and acknowledges clusters again (measured with Envoy 1.40 in both protocols). Otherwise, all clusters of
 * the client would stay unacknowledged.
 */
import { anyCluster, type GivenUpCluster, type NewCluster, type Rollout, settleRollout } from './cluster-rollout.ts';

/** `undefined` if the cluster is not configured. */
export type VersionOf = (name: string) => string | undefined;

/** Clusters of a client that may never become usable. The client does not report which cluster is warming. */
export type Suspects = {
  /** Clusters that fetch a secret which the client requests and which does not exist. */
  certain: readonly string[];
  /** Clusters that fetch a secret, the most likely first. */
  possible: readonly string[];
};

export type NextSuspects = {
  names: readonly string[];
  /** After these clusters are abandoned, the client probably acknowledges clusters, so other suspects are kept. */
  areCertain: boolean;
};

/**
 * Number of possible suspects abandoned at first. It doubles each time that the limit passes again, so that a slow client does not get all its
 * clusters again.
 */
export const firstSuspects = 100;

/** Clusters without a step left are abandoned: resources that wait for them are sent. */
export function rolloutAfterLimitStep(rollout: Rollout, versionOf: VersionOf): Rollout {
  const expiredClusters = rollout.newClusters.filter(isExpiring);
  const newClusters = rollout.newClusters.map((cluster): NewCluster => {
    if (cluster.stepsLeft === 0) return cluster;
    const stepsLeft = cluster.stepsLeft - 1;
    return stepsLeft === 0 ? { ...cluster, stepsLeft, state: 'abandoned' } : { ...cluster, stepsLeft };
  });
  const remainingClusters = newClusters.filter(
    ({ name, state, nonce }) => state !== 'abandoned' || nonce || name === anyCluster,
  );
  const sentClusters = expiredClusters.filter(({ state }) => state === 'sent' || state === 'updating');
  const givenUp = withGivenUp(
    rollout.givenUp,
    sentClusters
      .filter(({ name }) => name !== anyCluster)
      .map(({ name, state }) => ({ name, isNew: state === 'sent' })),
    versionOf,
  );
  return settleRollout({ ...rollout, newClusters: remainingClusters, givenUp });
}

function withGivenUp(
  givenUp: readonly GivenUpCluster[],
  clusters: readonly Omit<GivenUpCluster, 'version'>[],
  versionOf: VersionOf,
): readonly GivenUpCluster[] {
  const knownNames = new Set(givenUp.map(({ name }) => name));
  const addedClusters = clusters.flatMap(({ name, isNew }): GivenUpCluster[] => {
    const version = knownNames.has(name) ? undefined : versionOf(name);
    return version === undefined ? [] : [{ name, version, isNew }];
  });
  return addedClusters.length === 0 ? givenUp : [...givenUp, ...addedClusters];
}

/** Whether the next CDS response abandons clusters that may prevent the acknowledgement. */
export function isSearching({ newClusters }: Rollout): boolean {
  return newClusters.some(({ name, state }) => name === anyCluster && state === 'abandoned');
}

/**
 * Suspects that the next CDS response abandons. Certain ones come first, because Envoy replaces each cluster that is sent again, and resets
 * running calls of filters (authorization checks, mirrored requests) that use it.
 */
export function nextSuspects({ givenUp }: Rollout, { certain, possible }: Suspects): NextSuspects {
  const knownNames = new Set(givenUp.map(({ name }) => name));
  const isUnknown = (name: string): boolean => !knownNames.has(name);
  const next = certain.filter(isUnknown);
  if (next.length > 0) return { names: next, areCertain: true };
  return { names: possible.filter(isUnknown).slice(0, Math.max(firstSuspects, givenUp.length)), areCertain: false };
}

/** Abandons the suspects for a CDS response while {@link isSearching}. Without suspects left, the search ends. */
export function withSuspects(rollout: Rollout, suspects: readonly string[], versionOf: VersionOf): Rollout {
  const clusters = suspects.map((name) => ({ name, isNew: false }));
  const givenUp = withGivenUp(rollout.givenUp, clusters, versionOf);
  if (givenUp !== rollout.givenUp) return { ...rollout, givenUp };
  return settleRollout({ ...rollout, newClusters: rollout.newClusters.filter(({ name }) => name !== anyCluster) });
}

export function expiringClusters({ newClusters }: Rollout): readonly string[] {
  return newClusters.filter(isExpiring).map(({ name }) => name);
}

function isExpiring({ stepsLeft }: NewCluster): boolean {
  return stepsLeft === 1;
}

/** A cluster whose configuration changed is no longer abandoned. */
export function withConfiguration(rollout: Rollout, versionOf: VersionOf): Rollout {
  const givenUp = rollout.givenUp.filter(({ name, version }) => versionOf(name) === version);
  return givenUp.length === rollout.givenUp.length ? rollout : { ...rollout, givenUp };
}

export function namesGivenUpBetween(previousRollout: Rollout, nextRollout: Rollout): readonly string[] {
  if (previousRollout.givenUp === nextRollout.givenUp) return [];
  const knownNames = new Set(previousRollout.givenUp.map(({ name }) => name));
  return nextRollout.givenUp.filter(({ name }) => !knownNames.has(name)).map(({ name }) => name);
}
