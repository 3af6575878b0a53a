/** Changes that make-before-break delays at one client, for debug pages. */
import { stepsToJoin } from '../../../../machines/discovery/xds/cluster-removal.ts';
import type { NewCluster, RetainedCluster, Rollout } from '../../../../machines/discovery/xds/cluster-rollout.ts';
import { fetchLimitOf } from './warming-clusters.ts';

export interface HeldResourceWait {
  readonly kind: 'held';
  readonly name: string;
  /** `*` means all clusters. If empty, the resource is sent next. */
  readonly clusters: readonly string[];
}

export interface WarmingWait {
  readonly kind: 'warming';
  /** `*` if a reconnected client does not report the cluster. */
  readonly name: string;
  readonly state: NewCluster['state'];
  readonly needs: NewCluster['needs'];
}

export interface RetentionWait {
  readonly kind: 'kept';
  readonly name: string;
  readonly state: RetainedCluster['state'];
  /** Set only in state `named`. */
  readonly namedBy?: NamingResource;
  /** Types without an ACK of resources that no longer name the cluster. */
  readonly unacknowledged: readonly string[];
  /** Whether connections of a replaced listener drain. Only in state `lingering`. */
  readonly drains: boolean;
  /** `undefined` while the client uses the cluster. */
  readonly maxMs: number | undefined;
}

/** A configuration that is kept without a configured listener. */
export interface KeptConfigurationWait {
  readonly kind: 'kept';
  readonly name: string;
  readonly state: 'subscribed';
}

export interface AbandonedWait {
  readonly kind: 'given up';
  readonly name: string;
  readonly fetchMs: number;
}

export type RolloutWait = HeldResourceWait | WarmingWait | RetentionWait | KeptConfigurationWait | AbandonedWait;

/** The resource that names a kept cluster: sent, delayed, or listeners and routes of a `previous stream` after a reconnect. */
export type NamingResource = { readonly typeUrl: string; readonly name: string } | 'held resource' | 'previous stream';

export function heldWaitsOf({ held }: Rollout, requestedType: string): readonly HeldResourceWait[] {
  return held
    .filter(({ typeUrl }) => typeUrl === requestedType)
    .map(({ name, clusters }): HeldResourceWait => ({ kind: 'held', name, clusters }));
}

export function retentionWaitsOf(names: readonly string[]): readonly KeptConfigurationWait[] {
  return names.map((name) => ({ kind: 'kept', name, state: 'subscribed' }));
}

export function clusterWaits(
  { newClusters, retained, givenUp }: Rollout,
  waitContext: { readonly removalDelayMs: number; readonly naming: (cluster: string) => NamingResource | undefined },
): readonly RolloutWait[] {
  const limitedNames = new Set(givenUp.map(({ name }) => name));
  return [
    ...newClusters
      .filter(({ name, state }) => state !== 'abandoned' && !limitedNames.has(name))
      .map(({ name, state, needs }): WarmingWait => ({ kind: 'warming', name, state, needs })),
    ...retained.map((cluster) => retentionWait(cluster, waitContext)),
    ...givenUp.map(
      ({ name, isNew }): AbandonedWait => ({ kind: 'given up', name, fetchMs: fetchLimitOf({ isNew }).fetchMs }),
    ),
  ];
}

function retentionWait(
  { name, state, unacknowledged, stepsLeft, drains }: RetainedCluster,
  waitContext: Parameters<typeof clusterWaits>[1],
): RetentionWait {
  const namedBy = state === 'named' ? waitContext.naming(name) : undefined;
  const steps = state === 'lingering' ? stepsLeft + stepsToJoin : stepsLeft;
  const hasDeadline = state === 'lingering' || state === 'removable';
  const maxMs = hasDeadline ? steps * waitContext.removalDelayMs : undefined;
  return { kind: 'kept', name, state, ...(namedBy && { namedBy }), unacknowledged, drains: drains === true, maxMs };
}
