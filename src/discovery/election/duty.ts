/** What one replica of many writes: the chart `elected-writer` says when, a duty knows what. */
import type { WriteGate } from './write-gate.ts';

export interface DutyRun {
  /** What could not be written before counts as due as well. */
  readonly retry: boolean;
  /** Everything that is known counts as due: another may have written since, and nothing else tells a new leader. */
  readonly anew: boolean;
}

/** How a run ended. What came meanwhile is due for the next one. */
export interface DutyReport {
  readonly written: number;
  /** What is still to be written after a rest. A conflict is one: by then the newer object is known. */
  readonly failed: number;
  /** Why, of the last one, for people; empty: none failed, or others were quicker to write the same object. */
  readonly reason: string;
}

export interface Duty {
  /** Name of the duty's Lease: Istio's, where Istio has one for the same. */
  readonly lease: string;
  /** Annotations that each renewal writes into the Lease; absent: none. */
  leaseAnnotations?(): Readonly<Record<string, string>>;
  /** Tells whenever something becomes due; also while a run is under way. @returns ends it */
  watch(due: () => void): () => void;
  /** Something is due that has not been tried in vain. */
  readonly isDue: boolean;
  /** Writes what is due through the gate, each object once: it waits for nothing and tries nothing again. It does not reject. */
  writeDue(run: DutyRun, gate: WriteGate): Promise<DutyReport>;
}
