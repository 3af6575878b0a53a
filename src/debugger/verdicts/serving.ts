/** Which Envoy serves, as the supervisor tells it: `serving.began`, `serving.ended`. Runs in a browser. */
import type { TraceRecord } from '../../runtime/trace/trace.ts';

/** The events that {@link Serving} has to be told. */
export const servingEvents = ['serving.began', 'serving.ended'] as const;

export class Serving {
  /** The epoch that serves; undefined while none does. */
  name: string | undefined;
  /** When the last one ended; undefined while one serves, and before the first one did. */
  lostAt: number | undefined;
  /** Place of the record that told the end. */
  lostIndex = -1;
  #hasServed = false;

  /** Whether some Envoy has served before. */
  get hasServed(): boolean {
    return this.#hasServed;
  }

  /** To be told each record after the rule has looked at it. */
  take(record: TraceRecord, index: number): void {
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
