import type { TraceRecord } from '../../runtime/trace/trace.ts';

export const servingEvents = ['serving.began', 'serving.ended'] as const;

export class Serving {
  /** `undefined` if no epoch serves. */
  name: string | undefined;
  /** `undefined` while an epoch serves and before the first one. */
  lostAt: number | undefined;
  lostIndex = -1;
  #hasServed = false;

  get hasServed(): boolean {
    return this.#hasServed;
  }

  /** Must be called for each record after the rule has processed it. */
  addRecord(record: TraceRecord, index: number): void {
    if (record.kind !== 'event') return;
    const { type, name } = record.event;
    if (type === 'serving.began' && typeof name === 'string') {
      this.name = name;
      this.lostAt = undefined;
      this.#hasServed = true;
    } else if (type === 'serving.ended' && this.lostAt === undefined && this.#hasServed) {
      this.name = undefined;
      this.lostAt = record.t;
      this.lostIndex = index;
    }
  }
}
