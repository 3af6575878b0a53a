import type { TraceHeader, TraceLine, TraceRecord, TraceSink } from './trace.ts';
import { TraceState } from './trace-state.ts';

/** Records that are not there any more take an eighth of the memory at most. */
const cutsPerCapacity = 8;

/** Keeps the last records in memory: what a debugger that attaches later gets to see. */
export class TraceRing implements TraceSink {
  readonly #capacity: number;
  readonly #records: TraceRecord[] = [];
  readonly #listeners = new Set<() => void>();
  /** Records that are not there any more, of those that are in the list: it is cut now and then, not for each. */
  #dropped = 0;
  #header: TraceHeader | undefined;
  /** Before the oldest record that is left. */
  #state = TraceState.of({});

  /** @param capacity records that are kept */
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
    if (this.#records.length - this.#dropped > this.#capacity) {
      this.#state.apply(this.#records[this.#dropped++]!);
      if (this.#dropped >= this.#capacity / cutsPerCapacity) {
        this.#records.splice(0, this.#dropped);
        this.#dropped = 0;
      }
    }
    for (const listener of this.#listeners) listener();
  }

  /** That of the records that are left. */
  header(): TraceHeader | undefined {
    const actors = [...this.#state.actors.values()];
    return this.#header && { ...this.#header, ...(actors.length > 0 && { actors }) };
  }

  /** Records after the one with this number, at most `limit`. Undefined when some of them are gone already. */
  after(seq: number, limit: number): readonly TraceRecord[] | undefined {
    const oldest = this.#records[this.#dropped];
    if (oldest === undefined) return [];
    if (seq + 1 < oldest.seq) return undefined;
    const from = this.#dropped + (seq + 1 - oldest.seq);
    return this.#records.slice(from, from + limit);
  }

  /** The number of the record before the oldest one that is left. */
  get begin(): number {
    return (this.#records[this.#dropped]?.seq ?? 1) - 1;
  }

  /** The number of the newest record. */
  get end(): number {
    return this.#records.at(-1)?.seq ?? 0;
  }

  /** Calls back after every record; returns how to stop that. Listeners must be quick and must not throw. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  lines(): TraceLine[] {
    const header = this.header();
    return [...(header === undefined ? [] : [header]), ...this.#records.slice(this.#dropped)];
  }

  flush(): void {}
  close(): void {}
}
