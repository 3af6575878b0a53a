/**
 * The limit of a wait: what waits for a cluster is sent, and the cluster is given up, not the client. It is sent again with a time
 * limit for what it fetches: Envoy then uses it without that, and acknowledges clusters again (measured with Envoy 1.40 in both
 * protocols). A cluster that is sent without a time limit would keep all clusters of the client unacknowledged.
 */
import { anyCluster, type GivenUpCluster, type NewCluster, type Rollout, settled } from './cluster-rollout.ts';

/** What is known of the clusters that a client was sent. */
export type ClustersAtLimit = {
  /** Version of a cluster as the client was sent it; undefined: it was not. */
  versionOf: (name: string) => string | undefined;
  /** Clusters that may keep the client from acknowledging: asked where the record does not have them ({@link anyCluster}). */
  suspects: () => readonly string[];
};

/** A step of the limit has passed. Clusters that have none left are given up: what waits for them is sent. */
export function afterLimitStep(rollout: Rollout, { versionOf, suspects }: ClustersAtLimit): Rollout {
  const expired = rollout.newClusters.filter(isExpiring);
  const newClusters = rollout.newClusters.map((cluster): NewCluster => {
    if (cluster.stepsLeft === 0) return cluster;
    const stepsLeft = cluster.stepsLeft - 1;
    return stepsLeft === 0 ? { ...cluster, stepsLeft, state: 'abandoned' } : { ...cluster, stepsLeft };
  });
  const known = new Set(rollout.givenUp.map(({ name }) => name));
  const added = expired.flatMap((cluster): GivenUpCluster[] => {
    const { name, state } = cluster;
    if (state !== 'sent' && state !== 'updating') return [];
    const names = name === anyCluster ? suspects() : [name];
    const isNew = state === 'sent' && name !== anyCluster;
    return names.flatMap((one) => {
      const version = known.has(one) ? undefined : versionOf(one);
      return version === undefined ? [] : [{ name: one, version, isNew }];
    });
  });
  const givenUp = added.length === 0 ? rollout.givenUp : [...rollout.givenUp, ...added];
  const left = newClusters.filter(({ state, nonce }) => state !== 'abandoned' || nonce);
  return settled({ ...rollout, newClusters: left, givenUp });
}

/** The clusters that the next step of the limit gives up. */
export function expiringClusters({ newClusters }: Rollout): readonly string[] {
  return newClusters.filter(isExpiring).map(({ name }) => name);
}

function isExpiring({ stepsLeft }: NewCluster): boolean {
  return stepsLeft === 1;
}

/** A cluster whose configuration has changed is no longer given up. @param versionOf a cluster as it is configured now */
export function withConfiguration(rollout: Rollout, versionOf: (name: string) => string | undefined): Rollout {
  const givenUp = rollout.givenUp.filter(({ name, version }) => versionOf(name) === version);
  return givenUp.length === rollout.givenUp.length ? rollout : { ...rollout, givenUp };
}
