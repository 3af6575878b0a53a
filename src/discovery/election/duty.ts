/** A duty of an elected replica. The chart `elected-writer` decides when to write, the duty what to write. */
import type { WriteGate } from './write-gate.ts';

export interface DutyRun {
  /** Whether to include failed writes. */
  readonly retry: boolean;
  /** Whether all objects are due, because this replica is a new leader and another one may have written. */
  readonly includesAll: boolean;
}

/** Result of a run. Objects that become due during the run wait for the next one. */
export interface DutyReport {
  readonly writtenCount: number;
  /** Number of writes to retry after a delay, including conflicts, because the newer object is known by then. */
  readonly failedCount: number;
  /** Reason of the last failure, for logs. Empty if none existed, or only conflicts. */
  readonly reason: string;
}

export interface Duty {
  /** If Istio has the same duty, the name that Istio uses. */
  readonly lease: string;
  leaseAnnotations?(): Readonly<Record<string, string>>;
  /** Calls back when an object becomes due, also during a run. */
  watch(due: () => void): () => void;
  /** Whether an object is due that has not failed before. */
  readonly isDue: boolean;
  /** Writes each due object once through the gate, without waiting or retrying. Does not reject. */
  writeDue(run: DutyRun, gate: WriteGate): Promise<DutyReport>;
}
