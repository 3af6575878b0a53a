/** The chart `elected-writer` decides when to write, the duty what to write. */
import type { WriteGate } from './write-gate.ts';

export interface DutyRun {
  readonly retry: boolean;
  /** If true, all objects are due, because this replica is a new leader and another one may have written. */
  readonly includesAll: boolean;
}

/** Objects that become due during a run wait for the next one. */
export interface DutyReport {
  readonly writtenCount: number;
  /** Number of writes to retry after a delay. Includes conflicts, because the retry uses the newer object. */
  readonly failedCount: number;
  /** Empty if there were only conflicts. */
  readonly reason: string;
}

export interface Duty {
  /** If Istio has the same duty, the name that Istio uses. */
  readonly lease: string;
  leaseAnnotations?(): Readonly<Record<string, string>>;
  /** `onDue` can be called during a run. */
  watch(onDue: () => void): () => void;
  readonly isDue: boolean;
  /** Writes each due object once, without waiting or retrying. Does not reject. */
  writeDue(run: DutyRun, gate: WriteGate): Promise<DutyReport>;
}
