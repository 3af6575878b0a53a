/** What make before break delays at one client, and why: one plain record for debug pages, which word it. */
import { stepsToJoin } from '../../../../machines/discovery/xds/cluster-removal.ts';
import type { NewCluster, RetainedCluster, Rollout } from '../../../../machines/discovery/xds/cluster-rollout.ts';
import { fetchLimitOf } from './warming-clusters.ts';

/** A listener, route configuration or extension configuration that waits for clusters. */
export interface HeldWait {
  readonly kind: 'held';
  readonly name: string;
  /** Names; `*` stands for all clusters. Empty: it is sent next. */
  readonly clusters: readonly string[];
}

/** A cluster that the client cannot use yet, or whose update it cannot use yet. */
export interface WarmingWait {
  readonly kind: 'warming';
  /** `*`: a client that reconnected does not report which cluster it is. */
  readonly name: string;
  readonly state: NewCluster['state'];
  readonly needs: NewCluster['needs'];
}

/** A cluster that is not configured and that the client keeps. */
export interface KeptWait {
  readonly kind: 'kept';
  readonly name: string;
  readonly state: RetainedCluster['state'];
  /** While it is `named`. */
  readonly namedBy?: NamingResource;
  /** Type URLs of which the client has not acknowledged resources without it. */
  readonly unacknowledged: readonly string[];
  /** While it is `lingering`: connections of a listener that was replaced drain. */
  readonly drains: boolean;
  /** Milliseconds until it is removed at the latest; `undefined` while the client uses it. */
  readonly maxMs: number | undefined;
}

/**
 * A route or extension configuration that no configured listener uses, and that the client keeps as it was sent while it subscribes to it.
 */
export interface KeptConfigurationWait {
  readonly kind: 'kept';
  readonly name: string;
  readonly state: 'subscribed';
}

/** A cluster that was not usable within the limit, and is sent with a time limit for what it fetches. */
export interface GivenUpWait {
  readonly kind: 'given up';
  readonly name: string;
  /** Milliseconds that Envoy waits for endpoints and certificates. */
  readonly fetchMs: number;
}

export type RolloutWait = HeldWait | WarmingWait | KeptWait | KeptConfigurationWait | GivenUpWait;

/**
 * What names a cluster that is kept: a resource that the client was sent, one that is held back, or (`previous stream`) listeners and
 * routes that the client brought along when it reconnected.
 */
export type NamingResource = { readonly typeUrl: string; readonly name: string } | 'held resource' | 'previous stream';

export function heldOf({ held }: Rollout, ofType: string): readonly HeldWait[] {
  return held
    .filter(({ typeUrl }) => typeUrl === ofType)
    .map(({ name, clusters }): HeldWait => ({ kind: 'held', name, clusters }));
}

/** @param names of configurations whose listener is no longer configured */
export function keptOf(names: readonly string[]): readonly KeptConfigurationWait[] {
  return names.map((name) => ({ kind: 'kept', name, state: 'subscribed' }));
}

/** @param by.naming finds what names a cluster */
export function clusterWaits(
  { newClusters, retained, givenUp }: Rollout,
  by: { readonly removalDelayMs: number; readonly naming: (cluster: string) => NamingResource | undefined },
): readonly RolloutWait[] {
  const limited = new Set(givenUp.map(({ name }) => name));
  return [
    ...newClusters
      .filter(({ name, state }) => state !== 'abandoned' && !limited.has(name))
      .map(({ name, state, needs }): WarmingWait => ({ kind: 'warming', name, state, needs })),
    ...retained.map((cluster) => keptWait(cluster, by)),
    ...givenUp.map(
      ({ name, isNew }): GivenUpWait => ({ kind: 'given up', name, fetchMs: fetchLimitOf({ isNew }).fetchMs }),
    ),
  ];
}

function keptWait(
  { name, state, unacknowledged, stepsLeft, drains }: RetainedCluster,
  by: Parameters<typeof clusterWaits>[1],
): KeptWait {
  const namedBy = state === 'named' ? by.naming(name) : undefined;
  const steps = state === 'lingering' ? stepsLeft + stepsToJoin : stepsLeft;
  const isTimed = state === 'lingering' || state === 'removable';
  const maxMs = isTimed ? steps * by.removalDelayMs : undefined;
  return { kind: 'kept', name, state, ...(namedBy && { namedBy }), unacknowledged, drains: drains === true, maxMs };
}
