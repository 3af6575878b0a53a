/** Objects of a cluster whose status the control plane writes. */
import type { Config } from '../../model/config/config.ts';
import { type KindName, kinds } from '../../model/kinds/index.ts';
import type { ObjectError } from './object-findings.ts';

export interface KnownStatus {
  /** Conditions that the control plane wrote, by type. */
  readonly conditions: ReadonlyMap<string, { readonly status: string; readonly observedGeneration: number }>;
}

export interface StatusObjects {
  /** @param key `Kind/namespace/name` @returns `undefined` if there is no such object */
  statusOf(key: string): KnownStatus | undefined;
  /** Calls the listener with `undefined` if the newest version is valid. */
  onErrors(listener: (key: string, error: ObjectError | undefined) => void): void;
}

/**
 * Kinds whose status this control plane writes. Excludes WorkloadEntry, whose status is its health, and kinds of the Gateway API, which defines their
 * statuses.
 */
export const statusKinds: readonly KindName[] = (Object.keys(kinds) as KindName[]).filter(
  (kind) => kinds[kind].group.endsWith('.istio.io') && kind !== 'WorkloadEntry',
);

/** Kinds for which this control plane writes no status. */
export const kindsWithEvents: ReadonlySet<string> = new Set(['Service', 'Pod', 'EndpointSlice', 'Ingress']);

/**
 * Additionally contains kinds whose status cannot contain warnings: the status of a BackendTLSPolicy is per Gateway, that of a WorkloadEntry is its
 * health.
 */
export const kindsWithWarningEvents: ReadonlySet<string> = new Set([
  ...kindsWithEvents,
  'BackendTLSPolicy',
  'WorkloadEntry',
]);

const statusKindSet: ReadonlySet<string> = new Set(statusKinds);

export function hasStatus(kind: string): boolean {
  return statusKindSet.has(kind);
}

/**
 * Generation of the object. `undefined` for objects from outside the cluster, derived objects, and kinds for which this control plane writes no
 * status.
 */
export function generationOf({ kind, generation, standsFor, partOrigins }: Config): number | undefined {
  return hasStatus(kind) && standsFor === undefined && partOrigins === undefined ? generation : undefined;
}
