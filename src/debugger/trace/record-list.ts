/**
 * Access to single records of a trace. An implementation for many records stores text and columns instead of objects.
 */
import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';

export type RecordKind = TraceRecord['kind'];

/** Records in the order of their numbers. */
export interface RecordList {
  readonly length: number;
  /** `undefined` outside the list. Each call may create a new object, so records are compared by `seq`. */
  recordAt(index: number): TraceRecord | undefined;
  /** The index of a record with this `seq`; `undefined` if it is not in the list. */
  indexOf(seq: number): number | undefined;
  /**
   * Index of the last record before an index that is about an actor ({@link subjectOf}) and has one of these kinds.
   *
   * @param from records before this index are ignored
   */
  lastIndexAbout(actor: string, kinds: readonly RecordKind[], endIndex: number, from?: number): number | undefined;
}

/** The receiver of an event, or the actor that acted. */
export function subjectOf(record: TraceRecord): string {
  return record.kind === 'event' ? record.to : record.actor;
}

export class RecordArray implements RecordList {
  readonly records: readonly TraceRecord[];

  constructor(records: readonly TraceRecord[]) {
    this.records = records;
  }

  get length(): number {
    return this.records.length;
  }

  recordAt(index: number): TraceRecord | undefined {
    return this.records[index];
  }

  indexOf(seq: number): number | undefined {
    const index = firstIndex(this.records.length, (recordIndex) => this.records[recordIndex]!.seq >= seq);
    return this.records[index]?.seq === seq ? index : undefined;
  }

  lastIndexAbout(actor: string, kinds: readonly RecordKind[], endIndex: number, from = 0): number | undefined {
    for (let index = Math.min(endIndex, this.records.length) - 1; index >= from; index--) {
      const record = this.records[index]!;
      if (kinds.includes(record.kind) && subjectOf(record) === actor) return index;
    }
    return undefined;
  }
}

export class RecordedRun extends RecordArray {
  readonly header: TraceHeader;

  constructor(header: TraceHeader, records: readonly TraceRecord[]) {
    super(records);
    this.header = header;
  }
}

/**
 * The first of `length` sorted indexes for which `isBehind` is true; `length` if it is false for all. `isBehind` must
 * be true for all later indexes.
 */
export function firstIndex(length: number, isBehind: (index: number) => boolean): number {
  let lowIndex = 0;
  let highIndex = length;
  while (lowIndex < highIndex) {
    const middle = (lowIndex + highIndex) >>> 1;
    if (isBehind(middle)) highIndex = middle;
    else lowIndex = middle + 1;
  }
  return lowIndex;
}
