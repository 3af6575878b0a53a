/** A simulated proxy of a churn run, and pure questions about it. */
import type { Sidecar } from '../sidecars/sidecar.ts';
import { type Kind, kinds, type XdsProtocol } from '../sidecars/xds-types.ts';
import type { Holdings } from './final-checks.ts';
import type { DueEffect } from './oracle.ts';
import type { UnroutedClusters } from './unrouted-clusters.ts';

export interface ChurnProxy {
  readonly name: string;
  readonly number: number;
  readonly namespace: string;
  readonly protocol: XdsProtocol;
  readonly sidecar: Sidecar;
  /** Time since which only a change may cause a response; Infinity while there are other causes. */
  quietSinceMs: number;
  /** Clusters of its routes, by route configuration. */
  readonly named: Map<string, ReadonlySet<string>>;
  /** New clusters that no route of the sidecar names yet. */
  readonly unrouted: UnroutedClusters;
  /** Types whose last response it rejected. It may need all clusters that it had. */
  readonly rejecting: Set<Kind>;
  /**
   * Time of the first accepted routes or listeners after a rejection, or of a reconnect. The server removes clusters later that it kept for the
   * rejection, or for listeners that a returning proxy may drain.
   */
  acceptedMs: number;
  /** Time of the last new content of each resource, by type and name. */
  readonly lastNewContentAtMs: Map<string, number>;
  /** Current disturbance. */
  disturbance: 'none' | 'away' | 'stalled';
  lastResponseMs: number;
  /**
   * Time of the last CDS response, and number of CDS responses without a later EDS response: Envoy warms new clusters.
   */
  clustersAtMs: number;
  clustersToWarm: number;
  /** Last disturbance, for the report of a failure. */
  lastDisturbance: { readonly event: string; readonly atMs: number };
  /** The server process to which it connected last, counted from 0. */
  life: number;
  /** The last one that has sent it everything. */
  completeLife: number;
  /** End of the stream because of a restart, until it has everything again. */
  returnsSinceMs: number | undefined;
}

export const few = (names: readonly string[]): string =>
  `${names.slice(0, 3).join(', ')}${names.length > 3 ? ` and ${names.length - 3} more` : ''}`;
export const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

export function recordTrouble(proxy: ChurnProxy, event: string, atMs: number): void {
  proxy.lastDisturbance = { event, atMs };
}

/** Requested resources of a proxy; clusters without fetch timeouts. */
export function holdingsOf(sidecar: Sidecar): Holdings {
  return Object.fromEntries(
    kinds.map((kind) => {
      const { names } = sidecar.names(kind);
      const all = [...sidecar.resources(kind).values()];
      const requested = kind === 'EDS' || kind === 'RDS' ? all.filter(({ name }) => names.has(name)) : all;
      return [kind, new Map(requested.map(({ name, digest, content }) => [name, content?.digest ?? digest]))];
    }),
  );
}

/** Name of its workload, including the namespace. */
export const proxyName = ({ number, namespace }: Pick<ChurnProxy, 'number' | 'namespace'>): string =>
  `app-${number}.${namespace}`;

/** Whether the proxy was sent new content since the change. */
export function hasArrived({ lastNewContentAtMs }: ChurnProxy, { kind, name, sinceMs }: DueEffect): boolean {
  return (lastNewContentAtMs.get(`${kind} ${name}`) ?? Number.NEGATIVE_INFINITY) >= sinceMs;
}

/** Whether a route of the proxy names the cluster. */
export function isNamed({ named }: ChurnProxy, cluster: string): boolean {
  return [...named.values()].some((clusters) => clusters.has(cluster));
}

/** Whether the proxy may have a cluster that is no longer configured for it. */
export function mayKeep(proxy: ChurnProxy, cluster: string): boolean {
  return proxy.rejecting.size > 0 || isNamed(proxy, cluster);
}

/** @param news names of changed resources */
export function removedInUse(proxy: ChurnProxy, kind: Kind, news: readonly string[]): string[] {
  if (kind !== 'CDS') return [];
  const removed = news.filter((name) => !proxy.sidecar.resources('CDS').has(name) && isNamed(proxy, name));
  return removed.length === 0 ? [] : [`the removal of clusters that its routes name: ${few(removed)}`];
}
