/** Writes of one elected replica: the chart `elected-writer` decides when, a duty what to write. */
import type { WriteGate } from './write-gate.ts';

export interface DutyRun {
  /** Include failed writes. */
  readonly retry: boolean;
  /** All objects are due: another replica may have written, and a new leader has no other notification. */
  readonly anew: boolean;
}

/** Objects that become due during the run are left for the next. */
export interface DutyReport {
  readonly written: number;
  /** Number of writes to retry after a delay, including conflicts: the newer object is known by then. */
  readonly failed: number;
  /** Of the last failure, for logs; empty if none failed, or all failures were conflicts. */
  readonly reason: string;
}

export interface Duty {
  /** Name of the duty's Lease; Istio's name if Istio has the same duty. */
  readonly lease: string;
  leaseAnnotations?(): Readonly<Record<string, string>>;
  /** Calls back when something becomes due, also during a run. @returns stop function */
  watch(due: () => void): () => void;
  /** Whether something is due that has not failed before. */
  readonly isDue: boolean;
  /** Writes each due object once through the gate, without waiting or retrying. Does not reject. */
  writeDue(run: DutyRun, gate: WriteGate): Promise<DutyReport>;
}
