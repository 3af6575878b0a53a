import { type Departure, TraceChecker } from '../../src/debugger/check.ts';
import type { Diagram } from '../../src/debugger/diagram/diagram.ts';
import type { TraceHeader, TraceRecord } from '../../src/runtime/trace.ts';
import { TraceState } from '../../src/runtime/trace-state.ts';

/** Records between two states that are kept: a step backwards replays at most so many. */
const checkpointEvery = 500;

/**
 * A trace as the page holds it. It only grows, at its end. A place in it is an index: of the record that happened last
 * there; -1 is before the first one.
 */
export class Recording {
  readonly header: TraceHeader;
  readonly diagrams: readonly Diagram[];
  readonly #records: TraceRecord[] = [];
  /** The state before record 0, 500, 1000, … */
  readonly #checkpoints: TraceState[];
  /** After the last record. */
  readonly #newest: TraceState;
  readonly #checker: TraceChecker;
  readonly #departures: { readonly index: number; readonly departure: Departure }[] = [];
  /** The state that was asked for last: the next one is asked for near it. */
  #cached: { readonly index: number; readonly state: TraceState };

  constructor(header: TraceHeader, diagrams: readonly Diagram[] = []) {
    this.header = header;
    this.diagrams = diagrams;
    this.#newest = TraceState.of(header);
    this.#checkpoints = [this.#newest.copy()];
    this.#cached = { index: -1, state: this.#newest.copy() };
    this.#checker = new TraceChecker(diagrams);
  }

  get length(): number {
    return this.#records.length;
  }

  get records(): readonly TraceRecord[] {
    return this.#records;
  }

  /** Messages that departed from the diagrams, with the places of their records, in order. */
  get departures(): readonly { readonly index: number; readonly departure: Departure }[] {
    return this.#departures;
  }

  append(records: readonly TraceRecord[]): void {
    for (const record of records) {
      const index = this.#records.push(record) - 1;
      this.#newest.apply(record);
      if ((index + 1) % checkpointEvery === 0) this.#checkpoints.push(this.#newest.copy());
      for (const departure of this.#checker.feed(record)) this.#departures.push({ index, departure });
    }
  }

  /** The place of a record, given its number; undefined when it is not in the trace. */
  indexOf(seq: number): number | undefined {
    let low = 0;
    let high = this.#records.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const found = this.#records[middle]!.seq;
      if (found === seq) return middle;
      if (found < seq) low = middle + 1;
      else high = middle - 1;
    }
    return undefined;
  }

  /** Where every actor stands when the record at this place has happened. Not to be changed; another place, another object. */
  stateAt(index: number): TraceState {
    if (index === this.#cached.index) return this.#cached.state;
    if (index === this.#records.length - 1) {
      this.#cached = { index, state: this.#newest.copy() };
      return this.#cached.state;
    }
    const checkpoint = Math.floor((index + 1) / checkpointEvery);
    const near = this.#cached.index <= index && this.#cached.index >= checkpoint * checkpointEvery;
    const state = near ? this.#cached.state.copy() : this.#checkpoints[checkpoint]!.copy();
    for (let next = near ? this.#cached.index + 1 : checkpoint * checkpointEvery; next <= index; next++) {
      state.apply(this.#records[next]!);
    }
    this.#cached = { index, state };
    return state;
  }
}
