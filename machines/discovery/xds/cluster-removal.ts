/**
 * Clusters are removed last: one that is no longer configured stays at the client until no listener or route of the client names it, the client has
 * acknowledged these listeners and routes, and earlier requests have ended. A request chooses its route before the filters run and its cluster after
 * them, and a retry chooses it again.
 */
import type { RetainedCluster, Rollout } from './cluster-rollout.ts';

export type ClusterUse = {
  isNamed: (cluster: string) => boolean;
  /** Whether a replaced listener names the cluster: the listener's connections drain with their earlier routes. */
  drains: (cluster: string) => boolean;
  /** Types that name clusters and whose last response is not acknowledged. */
  unacknowledged: readonly string[];
  /** Steps of the removal delay while a listener drains. */
  drainSteps: number;
};

/** Maximum number of retained clusters; the oldest are removed early, which is reported. */
export const maxRetainedClusters = 1_000;

/** Steps for which removals wait, to be sent with a CDS response that has another reason. */
export const stepsToJoin = 1;

const noNames: readonly string[] = [];

/** @param removedNames names that the client has and that are no longer configured */
export function withRetained(
  rollout: Rollout,
  removedNames: readonly string[],
  isConfigured: (name: string) => boolean,
  use: () => ClusterUse,
): Rollout {
  const { retained } = rollout;
  const remainingClusters = retained.some(({ name }) => isConfigured(name))
    ? retained.filter(({ name }) => !isConfigured(name))
    : retained;
  const knownNames = new Set(remainingClusters.map(({ name }) => name));
  const addedNames = removedNames.filter((name) => !knownNames.has(name));
  if (addedNames.length === 0)
    return remainingClusters === retained ? rollout : { ...rollout, retained: remainingClusters };
  const clusterUse = use();
  const isRunning = isRemovalPending(rollout);
  const excessCount = Math.max(0, remainingClusters.length + addedNames.length - maxRetainedClusters);
  const retainedClusters = [
    ...remainingClusters,
    ...addedNames.map((name): RetainedCluster => ({ name, state: 'named', unacknowledged: noNames, stepsLeft: 0 })),
  ];
  return {
    ...rollout,
    retained: retainedClusters.map((cluster, index): RetainedCluster => {
      if (index < excessCount) return { ...cluster, state: 'removable', stepsLeft: 0 };
      return index < remainingClusters.length ? cluster : nextState(cluster, clusterUse, isRunning);
    }),
  };
}

export function withUseAcknowledged(rollout: Rollout, typeUrl: string, use: () => ClusterUse): Rollout {
  if (!rollout.retained.some(isInUse)) return rollout;
  const clusterUse = use();
  const isRunning = isRemovalPending(rollout);
  const unacknowledgedTypes = clusterUse.unacknowledged.filter((pendingType) => pendingType !== typeUrl);
  const retainedClusters = rollout.retained.map((cluster): RetainedCluster => {
    if (cluster.state === 'named')
      return nextState(cluster, { ...clusterUse, unacknowledged: unacknowledgedTypes }, isRunning);
    if (cluster.state !== 'unacknowledged') return cluster;
    const pendingTypes = cluster.unacknowledged.filter((pendingType) => pendingType !== typeUrl);
    return nextState(cluster, { ...clusterUse, unacknowledged: pendingTypes }, isRunning);
  });
  return { ...rollout, retained: retainedClusters };
}

function isInUse({ state }: RetainedCluster): boolean {
  return state === 'named' || state === 'unacknowledged';
}

/** Next state of a retained cluster: named → unacknowledged → lingering. @param isRunning the current step began earlier, so it is incomplete */
function nextState(cluster: RetainedCluster, use: ClusterUse, isRunning: boolean): RetainedCluster {
  const { name } = cluster;
  if (use.isNamed(name)) return { name, state: 'named', unacknowledged: noNames, stepsLeft: 0 };
  const { unacknowledged } = use;
  if (unacknowledged.length > 0) return { name, state: 'unacknowledged', unacknowledged, stepsLeft: 0 };
  const drains = use.drains(name);
  const stepsLeft = (drains ? use.drainSteps : 1) + (isRunning ? 1 : 0);
  return { name, state: 'lingering', unacknowledged: noNames, stepsLeft, ...(drains && { drains }) };
}

export function isRemovalPending({ retained }: Rollout): boolean {
  return retained.some((cluster) => !isInUse(cluster));
}

/**
 * Removable clusters are removed with the next CDS response. For one step, no response is sent only to remove them (in state of the world, it would
 * contain all other clusters).
 */
export function rolloutAfterRemovalStep(rollout: Rollout): Rollout {
  const retainedClusters = rollout.retained.map((cluster): RetainedCluster => {
    const stepsLeft = Math.max(0, cluster.stepsLeft - 1);
    if (cluster.state === 'removable') return { ...cluster, stepsLeft };
    if (cluster.state !== 'lingering') return cluster;
    if (stepsLeft > 0) return { ...cluster, stepsLeft };
    return { name: cluster.name, state: 'removable', unacknowledged: noNames, stepsLeft: stepsToJoin };
  });
  return { ...rollout, retained: retainedClusters };
}

export function areRemovalsDue({ retained }: Rollout): boolean {
  return retained.some(({ state, stepsLeft }) => state === 'removable' && stepsLeft === 0);
}

/** Names that became removable early because the client keeps too many. */
export function namesEvictedBetween(previousRollout: Rollout, nextRollout: Rollout): readonly string[] {
  if (nextRollout.retained.length <= maxRetainedClusters) return noNames;
  const removableNames = new Set(removableClusters(previousRollout));
  return removableClusters(nextRollout).filter((name) => !removableNames.has(name));
}

export function removableClusters({ retained }: Rollout): readonly string[] {
  return retained.filter(({ state }) => state === 'removable').map(({ name }) => name);
}

export function withoutRemovable(rollout: Rollout): Rollout {
  const retainedClusters = rollout.retained.filter(({ state }) => state !== 'removable');
  return retainedClusters.length === rollout.retained.length ? rollout : { ...rollout, retained: retainedClusters };
}
