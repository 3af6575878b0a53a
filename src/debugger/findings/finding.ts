/** Findings about a trace as sentences, each found by a rule, which is a pure function of the records in order. */
import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import type { RecordList } from '../trace/record-list.ts';
import type { TimePart } from './time-spent.ts';

/** `bad`: something was or may be lost; `note`: important for the user; `fine`: as expected. */
export type Weight = 'bad' | 'note' | 'fine';

export interface Finding {
  readonly rule: string;
  readonly weight: Weight;
  /** Without the time, which is printed before it; no full stop. */
  readonly sentence: string;
  /** Index of the record that the finding refers to. */
  readonly index: number;
  /** Indexes of the first and the last record that the finding covers. */
  readonly range: readonly [number, number];
  /** Index of its root cause, if that is in the trace. */
  readonly root?: number;
  /** The longest parts of its duration, longest first. */
  readonly spent?: readonly TimePart[];
}

/** The trace as far as it was read. */
export interface Run extends RecordList {
  readonly header: TraceHeader;
}

export interface RuleRun {
  /** Processes the record at an index and returns the resulting findings. */
  onRecord(record: TraceRecord, index: number, run: Run): readonly Finding[] | undefined;
  end?(run: Run): readonly Finding[] | undefined;
}

export interface FindingRule {
  readonly name: string;
  /** The records that are passed to the rule. */
  readonly reads: {
    readonly events: readonly string[];
    readonly kinds?: readonly Exclude<TraceRecord['kind'], 'event'>[];
  };
  begin(): RuleRun;
}

/** A rule that threw an error. It is disabled for the rest of the trace; the other rules continue. */
export interface BrokenRule {
  readonly rule: string;
  readonly reason: string;
}
