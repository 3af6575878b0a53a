import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';

export type RecordKind = TraceRecord['kind'];

/** An implementation for many records stores text and columns instead of objects. */
export interface RecordList {
  readonly length: number;
  /** `undefined` outside the list. Each call may create a new object, so records are compared by `seq`. */
  recordAt(index: number): TraceRecord | undefined;
  /** `undefined` if no record has this `seq`. */
  indexOf(seq: number): number | undefined;
  /**
   * The record is about an actor ({@link subjectOf}).
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
 * @returns `length` if `isAfter` is false for all indexes
 * @param isAfter must be true for all indexes after the first for which it is true
 */
export function firstIndex(length: number, isAfter: (index: number) => boolean): number {
  let lowIndex = 0;
  let highIndex = length;
  while (lowIndex < highIndex) {
    const middleIndex = (lowIndex + highIndex) >>> 1;
    if (isAfter(middleIndex)) highIndex = middleIndex;
    else lowIndex = middleIndex + 1;
  }
  return lowIndex;
}
