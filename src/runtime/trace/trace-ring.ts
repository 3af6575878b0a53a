import type { TraceHeader, TraceLine, TraceRecord, TraceSink } from './trace.ts';
import { TraceState } from './trace-state.ts';

/** Dropped records take at most an eighth of the memory. */
const compactionsPerCapacity = 8;

/** Keeps the last records in memory, for a debugger that attaches later. */
export class TraceRing implements TraceSink {
  readonly #capacity: number;
  readonly #records: TraceRecord[] = [];
  readonly #listeners = new Set<() => void>();
  /** Dropped records are removed from the list from time to time, not one by one. */
  #droppedCount = 0;
  #header: TraceHeader | undefined;
  /** State before the oldest remaining record. */
  #state = TraceState.of({});

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  write(line: TraceLine): void {
    if (line.kind === 'header') {
      this.#header = line;
      this.#state = TraceState.of(line);
      return;
    }
    this.#records.push(line);
    if (this.#records.length - this.#droppedCount > this.#capacity) {
      this.#state.apply(this.#records[this.#droppedCount++]!);
      if (this.#droppedCount >= this.#capacity / compactionsPerCapacity) {
        this.#records.splice(0, this.#droppedCount);
        this.#droppedCount = 0;
      }
    }
    for (const listener of this.#listeners) listener();
  }

  header(): TraceHeader | undefined {
    const actors = [...this.#state.actors.values()];
    return this.#header && { ...this.#header, ...(actors.length > 0 && { actors }) };
  }

  /** Returns at most `limit` records after `seq`, or `undefined` if some of them were dropped. */
  recordsAfter(seq: number, limit: number): readonly TraceRecord[] | undefined {
    const oldestRecord = this.#records[this.#droppedCount];
    if (oldestRecord === undefined) return [];
    if (seq + 1 < oldestRecord.seq) return undefined;
    const from = this.#droppedCount + (seq + 1 - oldestRecord.seq);
    return this.#records.slice(from, from + limit);
  }

  get seqBeforeOldest(): number {
    return (this.#records[this.#droppedCount]?.seq ?? 1) - 1;
  }

  get nextSeq(): number {
    return this.#records.at(-1)?.seq ?? 0;
  }

  /**
   * Calls back after every record. Listeners must be quick and must not throw. @returns a function that stops the calls
   */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  lines(): TraceLine[] {
    const header = this.header();
    return [...(header === undefined ? [] : [header]), ...this.#records.slice(this.#droppedCount)];
  }

  flush(): void {}
  close(): void {}
}
