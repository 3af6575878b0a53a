/** Objects of a cluster whose status the control plane may tell things in. */
import type { Config } from '../../model/config/config.ts';
import { type KindName, kinds } from '../../model/kinds/index.ts';
import type { Mistake } from './object-verdict.ts';

/** What an object's status says of us, as far as it is known here. */
export interface ToldStatus {
  /** Our own conditions, by type. */
  readonly conditions: ReadonlyMap<string, { readonly status: string; readonly observedGeneration: number }>;
}

/** What is known of the objects themselves. */
export interface StatusObjects {
  /** @param key `Kind/namespace/name`; undefined: there is no such object */
  toldOf(key: string): ToldStatus | undefined;
  /** Told of an object whose newest version is refused, or is no more. */
  onMistakes(listener: (key: string, mistake: Mistake | undefined) => void): void;
}

/**
 * Istio's kinds. A WorkloadEntry's status is its health, which whoever registers it writes; those of the Gateway API say what their own project
 * says that they have to.
 */
export const statusKinds: readonly KindName[] = (Object.keys(kinds) as KindName[]).filter(
  (kind) => kinds[kind].group.endsWith('.istio.io') && kind !== 'WorkloadEntry',
);

/** Kinds of which this program writes no status. */
export const kindsWithEvents: ReadonlySet<string> = new Set(['Service', 'Pod', 'EndpointSlice', 'Ingress']);

/**
 * With kinds in whose status there is no place for what has no effect: that of a BackendTLSPolicy is by Gateway, that of a WorkloadEntry is its
 * health.
 */
export const kindsWithWarningEvents: ReadonlySet<string> = new Set([
  ...kindsWithEvents,
  'BackendTLSPolicy',
  'WorkloadEntry',
]);

const known: ReadonlySet<string> = new Set(statusKinds);

export function hasStatus(kind: string): boolean {
  return known.has(kind);
}

/** Generation of an object of the cluster that is in force; undefined: it is of elsewhere, was made of others, or has no status of ours. */
export function generationOf({ kind, generation, standsFor, madeOf }: Config): number | undefined {
  return hasStatus(kind) && standsFor === undefined && madeOf === undefined ? generation : undefined;
}
