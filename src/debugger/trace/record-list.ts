/** The records of a trace in their order, asked for one by one: whoever holds many of them keeps text and columns, not objects. */
import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';

export type RecordKind = TraceRecord['kind'];

/** Records in the order of their numbers. A place is an index. */
export interface RecordList {
  readonly length: number;
  /** Undefined where there is none. It may be made anew each time: it is compared by its `seq`. */
  recordAt(index: number): TraceRecord | undefined;
  /** The place of a record, given its `seq`; undefined when it is not there. */
  indexOf(seq: number): number | undefined;
  /**
   * Place of the last record before a place that is about an actor ({@link aboutWhom}) and of one of these kinds.
   *
   * @param from what lies before this place is not looked at
   */
  lastAbout(actor: string, kinds: readonly RecordKind[], before: number, from?: number): number | undefined;
}

/** Who a record is about: the actor that did something, or that was told something. */
export function aboutWhom(record: TraceRecord): string {
  return record.kind === 'event' ? record.to : record.actor;
}

/** Records that are objects already. They may grow. */
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
    const index = firstIndex(this.records.length, (at) => this.records[at]!.seq >= seq);
    return this.records[index]?.seq === seq ? index : undefined;
  }

  lastAbout(actor: string, kinds: readonly RecordKind[], before: number, from = 0): number | undefined {
    for (let index = Math.min(before, this.records.length) - 1; index >= from; index--) {
      const record = this.records[index]!;
      if (kinds.includes(record.kind) && aboutWhom(record) === actor) return index;
    }
    return undefined;
  }
}

/** Those of one run. */
export class RecordedRun extends RecordArray {
  readonly header: TraceHeader;

  constructor(header: TraceHeader, records: readonly TraceRecord[]) {
    super(records);
    this.header = header;
  }
}

/** The first of so many sorted places that is behind a border; their number when none is. `isBehind` is true from there on. */
export function firstIndex(length: number, isBehind: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBehind(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
