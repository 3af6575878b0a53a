/**
 * Verdicts: what a trace comes to, in sentences that a person can say aloud. Each is found by a rule, which is pure: it is given
 * the records in their order and knows nothing of screens. The page, `chartpilot trace --summary` and the last line of an
 * agent's log print the same sentences. Runs in a browser.
 */
import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import type { RecordList } from '../trace/record-list.ts';
import type { TimePart } from './time-spent.ts';

/** `bad`: something was lost or may be; `note`: a person wants to know; `fine`: all went as it should. */
export type Weight = 'bad' | 'note' | 'fine';

export interface Verdict {
  /** The rule that found it. */
  readonly rule: string;
  readonly weight: Weight;
  /** Without its time, which stands before it; no full stop. */
  readonly sentence: string;
  /** Place of the record that it is about: when it was decided. */
  readonly index: number;
  /** Places of the first and the last record that it is about. */
  readonly range: readonly [number, number];
  /** Place of its root cause, where the trace has it. */
  readonly root?: number;
  /** Where the time went that it took, the longest first. */
  readonly spent?: readonly TimePart[];
}

/** The trace as far as it was read. */
export interface Run extends RecordList {
  readonly header: TraceHeader;
}

/** Follows one trace. */
export interface RuleRun {
  /** Takes the record at a place; answers what is found with it. */
  take(record: TraceRecord, index: number, run: Run): readonly Verdict[] | undefined;
  /** What is to be said when no record will come any more. */
  end?(run: Run): readonly Verdict[] | undefined;
}

export interface VerdictRule {
  readonly name: string;
  /** The records that it wants to see: of most it would say nothing, and a trace has many. */
  readonly reads: {
    /** Types of events; an event of another type is not shown to it. */
    readonly events: readonly string[];
    /** Kinds of other records. */
    readonly kinds?: readonly Exclude<TraceRecord['kind'], 'event'>[];
  };
  begin(): RuleRun;
}

/** A rule that threw: it says nothing more of this trace, and the others go on. */
export interface BrokenRule {
  readonly rule: string;
  readonly reason: string;
}
