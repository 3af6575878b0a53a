import type { Config } from '../../model/config/config.ts';
import { type KindName, kinds } from '../../model/kinds/index.ts';
import type { ObjectError } from './object-findings.ts';

export interface KnownStatus {
  /** Conditions that the control plane wrote, by type. */
  readonly conditions: ReadonlyMap<string, { readonly status: string; readonly observedGeneration: number }>;
}

export interface StatusObjects {
  /** @param key `Kind/namespace/name` */
  statusOf(key: string): KnownStatus | undefined;
  /** Calls the listener with `undefined` if the newest version is valid. */
  onErrors(listener: (key: string, error: ObjectError | undefined) => void): void;
}

/** Excludes WorkloadEntry, whose status is its health, and kinds of the Gateway API, which defines their statuses. */
export const statusKinds: readonly KindName[] = (Object.keys(kinds) as KindName[]).filter(
  (kind) => kinds[kind].group.endsWith('.istio.io') && kind !== 'WorkloadEntry',
);

/** This control plane writes no status of these kinds. */
export const kindsWithEvents: ReadonlySet<string> = new Set(['Service', 'Pod', 'EndpointSlice', 'Ingress']);

/** The status of a BackendTLSPolicy is per Gateway, that of a WorkloadEntry is its health, so neither can contain warnings. */
export const kindsWithWarningEvents: ReadonlySet<string> = new Set([
  ...kindsWithEvents,
  'BackendTLSPolicy',
  'WorkloadEntry',
]);

const statusKindSet: ReadonlySet<string> = new Set(statusKinds);

export function hasStatus(kind: string): boolean {
  return statusKindSet.has(kind);
}

/** `undefined` for objects from outside the cluster, derived objects, and kinds for which this control plane writes no status. */
export function generationOf({ kind, generation, standsFor, partOrigins }: Config): number | undefined {
  return hasStatus(kind) && standsFor === undefined && partOrigins === undefined ? generation : undefined;
}
