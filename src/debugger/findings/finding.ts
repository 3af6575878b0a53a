/** Findings about a trace. A rule is a pure function of the records in order. */
import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import type { RecordList } from '../trace/record-list.ts';
import type { TimePart } from './time-spent.ts';

/** `bad`: something was or may be lost; `note`: important for the user; `fine`: as expected. */
export type Weight = 'bad' | 'note' | 'fine';

export interface Finding {
  readonly rule: string;
  readonly weight: Weight;
  /** Without the time and without a full stop. */
  readonly sentence: string;
  readonly index: number;
  /** Indexes of the first and the last record. */
  readonly range: readonly [number, number];
  /** Index of the finding's root cause, if that is in the trace. */
  readonly root?: number;
  /** Longest first. */
  readonly spent?: readonly TimePart[];
}

/** The trace as far as it was read. */
export interface Run extends RecordList {
  readonly header: TraceHeader;
}

export interface RuleRun {
  onRecord(record: TraceRecord, index: number, run: Run): readonly Finding[] | undefined;
  end?(run: Run): readonly Finding[] | undefined;
}

export interface FindingRule {
  readonly name: string;
  readonly reads: {
    readonly events: readonly string[];
    readonly kinds?: readonly Exclude<TraceRecord['kind'], 'event'>[];
  };
  begin(): RuleRun;
}

/** A rule that threw an error is disabled for the rest of the trace. */
export interface BrokenRule {
  readonly rule: string;
  readonly reason: string;
}
