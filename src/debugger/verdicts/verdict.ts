/**
 * Findings about a trace, as readable sentences. Each is found by a rule, a pure function of the records in their order.
 * The page, `chartpilot trace --summary` and the last line of an agent's log print the same sentences. Runs in a browser.
 */
import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import type { RecordList } from '../trace/record-list.ts';
import type { TimePart } from './time-spent.ts';

/** `bad`: something was lost or may be; `note`: important for the user; `fine`: as expected. */
export type Weight = 'bad' | 'note' | 'fine';

export interface Verdict {
  /** The rule that found it. */
  readonly rule: string;
  readonly weight: Weight;
  /** Without the time, which is printed before it; no full stop. */
  readonly sentence: string;
  /** Index of the record that it is about. */
  readonly index: number;
  /** Indexes of the first and the last record that it is about. */
  readonly range: readonly [number, number];
  /** Index of its root cause, if it is in the trace. */
  readonly root?: number;
  /** The parts of the time that it took, longest first. */
  readonly spent?: readonly TimePart[];
}

/** The trace as far as it was read. */
export interface Run extends RecordList {
  readonly header: TraceHeader;
}

/** A rule that follows one trace. */
export interface RuleRun {
  /** Processes the record at an index and returns the resulting findings. */
  take(record: TraceRecord, index: number, run: Run): readonly Verdict[] | undefined;
  /** Findings at the end of the trace. */
  end?(run: Run): readonly Verdict[] | undefined;
}

export interface VerdictRule {
  readonly name: string;
  /** The records that the rule needs; a trace has many others. */
  readonly reads: {
    /** Types of events; events of other types are not passed to the rule. */
    readonly events: readonly string[];
    /** Kinds of other records. */
    readonly kinds?: readonly Exclude<TraceRecord['kind'], 'event'>[];
  };
  begin(): RuleRun;
}

/** A rule that threw an error: it is not applied to the rest of this trace, and the other rules continue. */
export interface BrokenRule {
  readonly rule: string;
  readonly reason: string;
}
