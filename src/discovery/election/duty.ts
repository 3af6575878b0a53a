/** Writes that one elected replica performs: the chart `elected-writer` decides when, a duty decides what. */
import type { WriteGate } from './write-gate.ts';

export interface DutyRun {
  /** Failed writes count as due, too. */
  readonly retry: boolean;
  /** Everything counts as due: another replica may have written since, and a new leader has no other notification. */
  readonly anew: boolean;
}

/** Result of a run. What becomes due during it is left for the next. */
export interface DutyReport {
  readonly written: number;
  /** Number of writes to retry after a delay, including conflicts: the newer object is known by then. */
  readonly failed: number;
  /** Reason of the last failure, for logs; empty if none failed, or all failures were conflicts. */
  readonly reason: string;
}

export interface Duty {
  /** Name of the duty's Lease; that of Istio if Istio has the same duty. */
  readonly lease: string;
  leaseAnnotations?(): Readonly<Record<string, string>>;
  /** Reports when something becomes due, also during a run. @returns a function that ends it */
  watch(due: () => void): () => void;
  /** `true` if something is due that has not failed before. */
  readonly isDue: boolean;
  /** Writes what is due through the gate, each object once, without waiting or retrying. Does not reject. */
  writeDue(run: DutyRun, gate: WriteGate): Promise<DutyReport>;
}
