import { type Departure, TraceChecker } from '../../../src/debugger/check/check.ts';
import type { Diagram } from '../../../src/debugger/diagram/diagram.ts';
import type { RecordKind, RecordList } from '../../../src/debugger/trace/record-list.ts';
import { Verdicts } from '../../../src/debugger/verdicts/verdicts.ts';
import type { TraceHeader, TraceRecord } from '../../../src/runtime/trace/trace.ts';
import { TraceState } from '../../../src/runtime/trace/trace-state.ts';
import { IdleTimes } from './idle-time.ts';
import { Lanes } from './lanes.ts';
import { RecordStore } from './record-store.ts';
import { firstAfter } from './sorted.ts';

/**
 * Records between two states that are kept, and as many as there are actors if those are more: to keep a state costs as much as
 * its actors, to replay from it as much as the records. What is kept never has more entries than the trace has records.
 */
const leastBetweenCheckpoints = 500;
/** The views ask for a few states of each place: before it, at it, after what it led to. */
const keptStates = 6;

/** Where more records than this are replayed for a state, one so far before it is kept as well: the next place is often behind it. */
const keptBefore = 1_000;

/** With these an actor comes to be, or into another state. */
const changing = ['spawn', 'transition'] as const;

/** Records that are not in the trace: those before its first one, or between two. */
export interface Gap {
  /** Place of the record behind it. */
  readonly index: number;
  readonly missing: number;
}

/** A departure, and the place of its record. */
export interface PlacedDeparture {
  readonly index: number;
  readonly departure: Departure;
}

/**
 * A trace as the page holds it. It only grows, at its end. A place in it is an index: of the record that happened last
 * there; -1 is before the first one.
 */
export class Recording implements RecordList {
  readonly header: TraceHeader;
  readonly diagrams: readonly Diagram[];
  /** The trace as bars and marks over time. */
  readonly lanes: Lanes;
  /** What it comes to. */
  readonly verdicts: Verdicts;
  /** When nothing on them changed for long. */
  readonly idle = new IdleTimes();
  readonly #records: RecordStore;
  /** States that are kept, each after the record at its place. */
  readonly #checkpoints: { readonly index: number; readonly state: TraceState }[];
  /** After the last record. */
  readonly #newest: TraceState;
  readonly #checker: TraceChecker;
  readonly #notChecked: readonly { readonly file: string; readonly omitted: readonly string[] }[];
  readonly #departures: PlacedDeparture[] = [];
  readonly #machines = new Map<string, string>();
  /** Machines that are their root state alone. */
  readonly #stateless: ReadonlySet<string>;
  readonly #logs: number[] = [];
  readonly #gaps: Gap[] = [];
  /** States that were asked for last: the next one is asked for near them. */
  readonly #asked: { readonly index: number; readonly state: TraceState }[] = [];

  /** A state a little before one that was far from all that are kept. */
  #near: { readonly index: number; readonly state: TraceState } | undefined;

  constructor(header: TraceHeader, diagrams: readonly Diagram[] = []) {
    this.header = header;
    this.verdicts = new Verdicts(this);
    this.diagrams = diagrams;
    this.#records = new RecordStore(header);
    this.lanes = new Lanes(header);
    this.#newest = TraceState.of(header);
    this.#stateless = new Set(header.machines.filter(({ states }) => states.length === 1).map(({ id }) => id));
    for (const { actor, machine } of header.actors ?? []) {
      if (machine !== undefined) this.#machines.set(actor, machine);
    }
    this.#checkpoints = [{ index: -1, state: this.#newest.copy() }];
    this.#checker = new TraceChecker(diagrams, header);
    this.#notChecked = this.#checker.report().notChecked;
  }

  get length(): number {
    return this.#records.length;
  }

  /** Parsed when it is asked for, unless it was a moment ago. */
  recordAt(index: number): TraceRecord | undefined {
    return this.#records.recordAt(index);
  }

  /** From one place to another, both included. */
  recordsIn(first: number, last: number): TraceRecord[] {
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => this.#records.recordAt(first + i)!);
  }

  /** What columns know of a record: nothing is parsed. */
  seqAt(index: number): number | undefined {
    return this.#records.seqAt(index);
  }

  kindAt(index: number): RecordKind {
    return this.#records.kindAt(index);
  }

  /** Who it is about: the actor that did something, or that was told something. */
  aboutAt(index: number): string {
    return this.#records.aboutAt(index);
  }

  /** Of a message: who is at its other end; undefined of what is none, and of an end that is told to nobody. */
  otherAt(index: number): string | undefined {
    return this.#records.otherAt(index);
  }

  /** An event's type, a timer's name; what a step was taken on. */
  typeAt(index: number): string | undefined {
    return this.#records.typeAt(index);
  }

  lastAbout(actor: string, kinds: readonly RecordKind[], before: number, from = 0): number | undefined {
    return this.#records.lastAbout(actor, kinds, before, from);
  }

  /** Why an actor has no state to show: it is an effect, its machine has no states, or it has not begun. */
  withoutState(machine: string | undefined): 'an effect' | 'no states' | 'not started' {
    if (machine === undefined) return 'an effect';
    return this.#stateless.has(machine) ? 'no states' : 'not started';
  }

  /** The machine of an actor, whether it lives or not: of the last bearer of a name. Undefined for effects. */
  machineOf(actor: string): string | undefined {
    return this.#machines.get(actor);
  }

  /** Where records are missing, in order. */
  get gaps(): readonly Gap[] {
    return this.#gaps;
  }

  /** Messages that departed from the diagrams, with the places of their records, in order. */
  get departures(): readonly PlacedDeparture[] {
    return this.#departures;
  }

  /** Diagrams that it is not held against: the program left out messages that they speak about. */
  get notChecked(): readonly { readonly file: string; readonly omitted: readonly string[] }[] {
    return this.#notChecked;
  }

  /** @param lines their texts, of this version of the format */
  append(
    records: readonly TraceRecord[],
    lines: readonly string[] = records.map((record) => JSON.stringify(record)),
  ): void {
    for (const [at, record] of records.entries()) this.#append(record, lines[at]!);
  }

  #append(record: TraceRecord, line: string): void {
    const index = this.length;
    const missing = record.seq - (this.#records.seqAt(index - 1) ?? 0) - 1;
    if (missing > 0) this.#gaps.push({ index, missing });
    this.#records.append(record, line);
    this.#newest.apply(record);
    const since = index - this.#checkpoints.at(-1)!.index;
    if (since >= Math.max(leastBetweenCheckpoints, this.#newest.size)) {
      this.#checkpoints.push({ index, state: this.#newest.copy() });
    }
    const drawn = this.lanes.version;
    this.lanes.feed(record, index);
    if (record.kind === 'log') this.#logs.push(index);
    if (record.kind === 'spawn' && record.machine !== undefined) this.#machines.set(record.actor, record.machine);
    for (const departure of this.#checker.feed(record)) {
      this.#departures.push({ index, departure });
      this.lanes.depart(departure, index);
    }
    if (index === 0 || this.lanes.version !== drawn) this.idle.note(record.t);
    this.verdicts.take(record);
  }

  /** The place of a record, given its number; undefined when it is not in the trace. */
  indexOf(seq: number): number | undefined {
    return this.#records.indexOf(seq);
  }

  /** The trace's clock when the record at this place happened; that of the first record before it. */
  timeAt(index: number): number {
    return this.#records.timeAt(index) ?? this.#records.timeAt(0) ?? 0;
  }

  /** The last place whose record had happened at a time of the trace's clock. */
  placeAt(t: number): number {
    return this.#records.firstAfter(t) - 1;
  }

  /** Since when (the trace's clock) an actor was in the state that it was in at a place; undefined when that began before the trace. */
  inStateSince(actor: string, index: number): number | undefined {
    const last = this.#records.lastAbout(actor, changing, index + 1);
    return last === undefined ? undefined : this.timeAt(last);
  }

  /** First and last record while an actor was in the state in which it was at a place; undefined before it was spawned. */
  inStateWithin(actor: string, index: number): readonly [number, number] | undefined {
    const first = this.#records.lastAbout(actor, changing, index + 1);
    if (first === undefined) return undefined;
    return [first, (this.#records.nextAbout(actor, changing, index) ?? this.length) - 1];
  }

  /** Places of the records that name this one as their cause. */
  ledTo(seq: number): readonly number[] {
    return this.#records.ledTo(seq);
  }

  /** Places of the lines that processes wrote, from one time to another, both included. */
  logsBetween(from: number, to: number): readonly number[] {
    const first = firstAfter(this.#logs, (log) => this.timeAt(log) >= from);
    const end = firstAfter(this.#logs, (log) => this.timeAt(log) > to);
    return this.#logs.slice(first, end);
  }

  departureAt(index: number): readonly Departure[] {
    const first = firstAfter(this.#departures, (departure) => departure.index >= index);
    const end = firstAfter(this.#departures, (departure) => departure.index > index);
    return this.#departures.slice(first, end).map(({ departure }) => departure);
  }

  /** Place of the departure next to a place, forwards (1) or backwards (-1). */
  nextDeparture(index: number, direction: 1 | -1): number | undefined {
    if (direction === 1) {
      return this.#departures[firstAfter(this.#departures, (departure) => departure.index > index)]?.index;
    }
    return this.#departures[firstAfter(this.#departures, (departure) => departure.index >= index) - 1]?.index;
  }

  /** Where every actor stands when the record at this place has happened. Not to be changed; another place, another object. */
  stateAt(index: number): TraceState {
    const known = this.#asked.find((asked) => asked.index === index);
    if (known !== undefined) return known.state;
    const state = index === this.length - 1 ? this.#newest.copy() : this.#replayTo(index);
    this.#asked.unshift({ index, state });
    this.#asked.length = Math.min(this.#asked.length, keptStates);
    return state;
  }

  /** From the checkpoint before a place, or from a state near it that was asked for already. */
  #replayTo(index: number): TraceState {
    const next = firstAfter(this.#checkpoints, (checkpoint) => checkpoint.index > index);
    let { index: from, state: begin } = this.#checkpoints[next - 1]!;
    for (const known of this.#near === undefined ? this.#asked : [...this.#asked, this.#near]) {
      if (known.index <= index && known.index > from) ({ index: from, state: begin } = known);
    }
    const state = begin.copy();
    const near = index - from > 2 * keptBefore ? index - keptBefore : undefined;
    for (let at = from + 1; at <= index; at++) {
      state.apply(this.#records.recordAt(at)!);
      if (at === near) this.#near = { index: at, state: state.copy() };
    }
    return state;
  }
}
