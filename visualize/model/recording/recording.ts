import { type Deviation, TraceChecker } from '../../../src/debugger/check/check.ts';
import type { Diagram } from '../../../src/debugger/diagram/diagram.ts';
import { TraceFindings } from '../../../src/debugger/findings/trace-findings.ts';
import type { RecordKind, RecordList } from '../../../src/debugger/trace/record-list.ts';
import type { TraceHeader, TraceRecord } from '../../../src/runtime/trace/trace.ts';
import { TraceState } from '../../../src/runtime/trace/trace-state.ts';
import { IdleTimes } from './idle-time.ts';
import { Lanes } from './lanes.ts';
import { RecordStore } from './record-store.ts';
import { firstIndexAfter } from './sorted.ts';

/** More actors increase this number: all checkpoints together have at most as many entries as the trace has records. */
const minRecordsBetweenCheckpoints = 500;
/** Views need the states before a place, at it, and after its consequences. */
const maxCachedStates = 6;

/** If replaying takes more records than this, the state this many records earlier is cached as well. */
const cachedStateDistance = 1_000;

const stateChangingKinds = ['spawn', 'transition'] as const;

/** Missing records, before the first record or between two records. */
export interface Gap {
  /** Index of the record after the gap. */
  readonly index: number;
  readonly missingCount: number;
}

export interface PlacedDeviation {
  readonly index: number;
  readonly deviation: Deviation;
}

/** A place is the index of the last record at that place; -1 is before the first record. */
export class PageRecording implements RecordList {
  readonly header: TraceHeader;
  readonly diagrams: readonly Diagram[];
  readonly lanes: Lanes;
  readonly findings: TraceFindings;
  readonly idleTimes = new IdleTimes();
  readonly #records: RecordStore;
  /** Each state is that after the record at its index. */
  readonly #checkpoints: { readonly index: number; readonly state: TraceState }[];
  readonly #newestState: TraceState;
  readonly #checker: TraceChecker;
  readonly #notChecked: readonly { readonly file: string; readonly omitted: readonly string[] }[];
  readonly #deviations: PlacedDeviation[] = [];
  readonly #machines = new Map<string, string>();
  readonly #statelessMachines: ReadonlySet<string>;
  readonly #logs: number[] = [];
  readonly #gaps: Gap[] = [];
  /** The next request is usually near one of these states. */
  readonly #requestedStates: { readonly index: number; readonly state: TraceState }[] = [];

  /** A cached state a little before a requested one that is far from all checkpoints. */
  #cachedState: { readonly index: number; readonly state: TraceState } | undefined;

  constructor(header: TraceHeader, diagrams: readonly Diagram[] = []) {
    this.header = header;
    this.findings = new TraceFindings(this);
    this.diagrams = diagrams;
    this.#records = new RecordStore(header);
    this.lanes = new Lanes(header);
    this.#newestState = TraceState.of(header);
    this.#statelessMachines = new Set(header.machines.filter(({ states }) => states.length === 1).map(({ id }) => id));
    for (const { actor, machine } of header.actors ?? []) {
      if (machine !== undefined) this.#machines.set(actor, machine);
    }
    this.#checkpoints = [{ index: -1, state: this.#newestState.copy() }];
    this.#checker = new TraceChecker(diagrams, header);
    this.#notChecked = this.#checker.report().notChecked;
  }

  get length(): number {
    return this.#records.length;
  }

  recordAt(index: number): TraceRecord | undefined {
    return this.#records.recordAt(index);
  }

  /** @param last inclusive */
  recordsIn(first: number, last: number): TraceRecord[] {
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => this.#records.recordAt(first + i)!);
  }

  seqAt(index: number): number | undefined {
    return this.#records.seqAt(index);
  }

  kindAt(index: number): RecordKind {
    return this.#records.kindAt(index);
  }

  subjectAt(index: number): string {
    return this.#records.subjectAt(index);
  }

  otherActorAt(index: number): string | undefined {
    return this.#records.otherActorAt(index);
  }

  typeAt(index: number): string | undefined {
    return this.#records.typeAt(index);
  }

  lastIndexAbout(actor: string, kinds: readonly RecordKind[], endIndex: number, from = 0): number | undefined {
    return this.#records.lastIndexAbout(actor, kinds, endIndex, from);
  }

  /** Why an actor of this machine has no state to show. */
  missingStateReason(machine: string | undefined): 'an effect' | 'no states' | 'not started' {
    if (machine === undefined) return 'an effect';
    return this.#statelessMachines.has(machine) ? 'no states' : 'not started';
  }

  /** Machine of the last actor with this name; `undefined` for effects. */
  machineOf(actor: string): string | undefined {
    return this.#machines.get(actor);
  }

  get gaps(): readonly Gap[] {
    return this.#gaps;
  }

  get deviations(): readonly PlacedDeviation[] {
    return this.#deviations;
  }

  /** The program does not record all messages of these diagrams. */
  get notChecked(): readonly { readonly file: string; readonly omitted: readonly string[] }[] {
    return this.#notChecked;
  }

  append(
    records: readonly TraceRecord[],
    lines: readonly string[] = records.map((record) => JSON.stringify(record)),
  ): void {
    for (const [lineIndex, record] of records.entries()) this.#append(record, lines[lineIndex]!);
  }

  #append(record: TraceRecord, line: string): void {
    const index = this.length;
    const missingRecords = record.seq - (this.#records.seqAt(index - 1) ?? 0) - 1;
    if (missingRecords > 0) this.#gaps.push({ index, missingCount: missingRecords });
    this.#records.append(record, line);
    this.#newestState.apply(record);
    const recordsSinceCheckpoint = index - this.#checkpoints.at(-1)!.index;
    if (recordsSinceCheckpoint >= Math.max(minRecordsBetweenCheckpoints, this.#newestState.size)) {
      this.#checkpoints.push({ index, state: this.#newestState.copy() });
    }
    const drawnVersion = this.lanes.version;
    this.lanes.addRecord(record, index);
    if (record.kind === 'log') this.#logs.push(index);
    if (record.kind === 'spawn' && record.machine !== undefined) this.#machines.set(record.actor, record.machine);
    for (const deviation of this.#checker.feed(record)) {
      this.#deviations.push({ index, deviation });
      this.lanes.addDeviation(deviation, index);
    }
    if (index === 0 || this.lanes.version !== drawnVersion) this.idleTimes.recordChange(record.t);
    this.findings.addRecord(record);
  }

  indexOf(seq: number): number | undefined {
    return this.#records.indexOf(seq);
  }

  /** The time of the record; before the first record, that of the first. */
  timeAt(index: number): number {
    return this.#records.timeAt(index) ?? this.#records.timeAt(0) ?? 0;
  }

  /** Index of the last record up to a time of the trace's clock. */
  placeAt(t: number): number {
    return this.#records.firstAfter(t) - 1;
  }

  /** `undefined` if the actor entered its state before the trace began. */
  stateEnteredAt(actor: string, index: number): number | undefined {
    const entryIndex = this.#records.lastIndexAbout(actor, stateChangingKinds, index + 1);
    return entryIndex === undefined ? undefined : this.timeAt(entryIndex);
  }

  /** `undefined` before the actor's spawn. */
  stateRangeAt(actor: string, index: number): readonly [number, number] | undefined {
    const first = this.#records.lastIndexAbout(actor, stateChangingKinds, index + 1);
    if (first === undefined) return undefined;
    return [first, (this.#records.nextIndexAbout(actor, stateChangingKinds, index) ?? this.length) - 1];
  }

  consequencesOf(seq: number): readonly number[] {
    return this.#records.consequencesOf(seq);
  }

  /** Both times are inclusive. */
  logsBetween(from: number, to: number): readonly number[] {
    const startIndex = firstIndexAfter(this.#logs, (log) => this.timeAt(log) >= from);
    const endIndex = firstIndexAfter(this.#logs, (log) => this.timeAt(log) > to);
    return this.#logs.slice(startIndex, endIndex);
  }

  deviationsAt(index: number): readonly Deviation[] {
    const startIndex = firstIndexAfter(this.#deviations, (deviation) => deviation.index >= index);
    const endIndex = firstIndexAfter(this.#deviations, (deviation) => deviation.index > index);
    return this.#deviations.slice(startIndex, endIndex).map(({ deviation }) => deviation);
  }

  nextDeviation(index: number, direction: 1 | -1): number | undefined {
    if (direction === 1) {
      return this.#deviations[firstIndexAfter(this.#deviations, (deviation) => deviation.index > index)]?.index;
    }
    return this.#deviations[firstIndexAfter(this.#deviations, (deviation) => deviation.index >= index) - 1]?.index;
  }

  /** The state is read-only; each place has its own object. */
  stateAt(index: number): TraceState {
    const requestedState = this.#requestedStates.find((requested) => requested.index === index);
    if (requestedState !== undefined) return requestedState.state;
    const state = index === this.length - 1 ? this.#newestState.copy() : this.#replayTo(index);
    this.#requestedStates.unshift({ index, state });
    this.#requestedStates.length = Math.min(this.#requestedStates.length, maxCachedStates);
    return state;
  }

  #replayTo(index: number): TraceState {
    const nextCheckpointIndex = firstIndexAfter(this.#checkpoints, (checkpoint) => checkpoint.index > index);
    let { index: from, state: startState } = this.#checkpoints[nextCheckpointIndex - 1]!;
    for (const cachedState of this.#cachedState === undefined
      ? this.#requestedStates
      : [...this.#requestedStates, this.#cachedState]) {
      if (cachedState.index <= index && cachedState.index > from) ({ index: from, state: startState } = cachedState);
    }
    const state = startState.copy();
    const cacheFromIndex = index - from > 2 * cachedStateDistance ? index - cachedStateDistance : undefined;
    for (let recordIndex = from + 1; recordIndex <= index; recordIndex++) {
      state.apply(this.#records.recordAt(recordIndex)!);
      if (recordIndex === cacheFromIndex) this.#cachedState = { index: recordIndex, state: state.copy() };
    }
    return state;
  }
}
