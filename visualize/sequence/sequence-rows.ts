/** The rows of the sequence view: which records it shows, for whom, and where. Grows with the trace, never from anew. */
import type { Departure } from '../../src/debugger/check/check.ts';
import { MessageReader, outside, unknownParent } from '../../src/debugger/check/message.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import type { Recording } from '../model/recording.ts';
import { type Lifeline, Lifelines } from './sequence-lifelines.ts';

/** `ended`: stopped or failed; `done` goes to the parent. */
export type EntryKind = 'event' | 'spawn' | 'timer' | 'done' | 'ended' | 'state' | 'effect';

/** A record that concerns lifelines. */
export interface Entry {
  /** Its place in the trace. */
  readonly index: number;
  readonly kind: EntryKind;
  readonly fromActor: string;
  readonly toActor: string;
  readonly from: Lifeline;
  readonly to: Lifeline;
}

/** All entries of a trace, whatever is shown of them. */
export class SequenceIndex {
  readonly recording: Recording;
  readonly #entries: Entry[] = [];
  readonly #lifelines = new Lifelines();
  readonly #messages: MessageReader;
  #read = 0;

  constructor(recording: Recording) {
    this.recording = recording;
    const living = recording.header.actors ?? [];
    this.#messages = new MessageReader(living);
    for (const { actor } of living) this.#lifelines.begin(actor, -1);
    this.grow();
  }

  get entries(): readonly Entry[] {
    return this.#entries;
  }

  get lifelines(): readonly Lifeline[] {
    return this.#lifelines.all;
  }

  /** Takes in what was appended to the recording since. */
  grow(): void {
    const { records } = this.recording;
    for (; this.#read < records.length; this.#read++) this.#take(records[this.#read]!, this.#read);
  }

  #take(record: TraceRecord, index: number): void {
    const lifelines = this.#lifelines;
    if (record.kind === 'spawn') lifelines.begin(record.actor, index);
    const message = this.#messages.read(record);
    if (message !== undefined) {
      const { from, to } = message;
      this.#add(index, record.kind === 'stop' ? 'done' : (record.kind as 'event' | 'spawn' | 'timer'), from, to);
    } else if (record.kind === 'transition' || record.kind === 'unexpected') {
      this.#add(index, 'state', record.actor, record.actor);
    } else if (record.kind === 'effect') {
      this.#add(index, 'effect', record.actor, record.actor);
    } else if (record.kind === 'stop') {
      this.#add(index, 'ended', record.actor, record.actor);
    }
    if (record.kind === 'stop') lifelines.end(record.actor, index);
  }

  #add(index: number, kind: EntryKind, fromActor: string, toActor: string): void {
    const of = (actor: string): Lifeline => this.#lifelines.of(actor, actor === outside ? -1 : index);
    // Roots come and go by themselves: nobody in the diagram does it.
    const from = kind === 'spawn' && fromActor === outside ? of(toActor) : of(fromActor);
    const to = kind === 'done' && (toActor === outside || toActor === unknownParent) ? from : of(toActor);
    this.#entries.push({ index, kind, fromActor, toActor, from, to });
  }
}

/** What a person wants to see. Departures are shown whatever it is. */
export interface RowFilter {
  /** Only what concerns this actor or its effects. */
  readonly actor?: string;
  /** Changes of states, and effects, between the messages. */
  readonly states: boolean;
  /** What XState tells actors itself: `xstate.done.actor.…`. */
  readonly internal: boolean;
}

export interface Row {
  readonly entry: Entry;
  /** 0: the entry itself; from 1: a line below it that says what was expected. */
  readonly line: number;
}

/** Arrows that a departure names at the most, and its first line. */
const maxExpected = 4;

/** The rows that a filter leaves. */
export class SequenceRows {
  readonly index: SequenceIndex;
  readonly filter: RowFilter;
  /** Of each row: its entry and its line. */
  readonly #entries: number[] = [];
  readonly #lines: number[] = [];
  readonly #used = new Set<Lifeline>();
  #read = 0;
  /** Place in the recording's departures. */
  #departure = 0;

  constructor(index: SequenceIndex, filter: RowFilter) {
    this.index = index;
    this.filter = filter;
    this.grow();
  }

  get length(): number {
    return this.#entries.length;
  }

  /** Lifelines that some row touches. */
  get lifelines(): ReadonlySet<Lifeline> {
    return this.#used;
  }

  row(at: number): Row {
    return { entry: this.index.entries[this.#entries[at]!]!, line: this.#lines[at]! };
  }

  /** Takes in what was added to the index since. */
  grow(): void {
    const { entries } = this.index;
    for (; this.#read < entries.length; this.#read++) {
      const entry = entries[this.#read]!;
      const lines = this.#departureLines(entry.index);
      if (lines === 0 && !this.#shows(entry)) continue;
      this.#used.add(entry.from).add(entry.to);
      for (let line = 0; line <= lines; line++) {
        this.#entries.push(this.#read);
        this.#lines.push(line);
      }
    }
  }

  /** How many lines tell what a record departs from. To be asked for one record after the other. */
  #departureLines(index: number): number {
    const { departures } = this.index.recording;
    let lines = 0;
    for (; (departures[this.#departure]?.index ?? Number.POSITIVE_INFINITY) <= index; this.#departure++) {
      const next = departures[this.#departure]!;
      if (next.index === index) lines += departureLines(next.departure);
    }
    return lines;
  }

  /** The row of a record, or the last one before it; -1 when there is none. */
  rowOf(index: number): number {
    const after = this.rowsBefore(index + 1);
    return after === 0 ? -1 : after - 1 - this.#lines[after - 1]!;
  }

  /** How many rows come before a record: where its own row is, if it has one. */
  rowsBefore(index: number): number {
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#indexAt(middle) < index) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #indexAt(row: number): number {
    return this.index.entries[this.#entries[row]!]!.index;
  }

  #shows({ index, kind, fromActor, toActor }: Entry): boolean {
    const { actor, states, internal } = this.filter;
    if (!states && (kind === 'state' || kind === 'effect')) return false;
    if (!internal && kind === 'event' && isInternal(this.index.recording.records[index]!)) return false;
    return actor === undefined || belongsTo(fromActor, actor) || belongsTo(toActor, actor);
  }
}

/** How many lines say what was expected instead of a message. */
export function departureLines({ expected }: Departure): number {
  return 1 + Math.min(expected.length, maxExpected + 1);
}

/** The departure that a line below a row is about, and which of its lines it is, from 0. */
export function departureOfLine(
  departures: readonly Departure[],
  line: number,
): { departure: Departure; part: number } | undefined {
  let part = line - 1;
  for (const departure of departures) {
    const lines = departureLines(departure);
    if (part < lines) return { departure, part };
    part -= lines;
  }
  return undefined;
}

/** A line below a departure: what it is, or one of the arrows that were expected. */
export function departureText(departure: Departure, part: number): string {
  const { kind, diagram, expected } = departure;
  if (part === 0) {
    if (kind === 'undeclared') return 'undeclared: its ends take part in diagrams, and no diagram has this message';
    const what = kind === 'out-of-order' ? 'out of order' : 'unexpected';
    const activation = diagram?.n === undefined ? '' : `, N = ${diagram.n}`;
    const since = diagram?.startedAt === undefined ? '' : `, under way since #${diagram.startedAt}`;
    return `${what}: ${nameOf(diagram?.file ?? '')}:${diagram?.line}${activation}${since}`;
  }
  if (part > maxExpected) return `or ${expected.length - maxExpected} more`;
  const { from, to, type, file, line } = expected[part - 1]!;
  return `${part === 1 ? 'expected' : 'or'} ${from} → ${to}: ${type}  (${nameOf(file)}:${line})`;
}

/** All lines below a departure. */
export function departureTexts(departure: Departure): string[] {
  return Array.from({ length: departureLines(departure) }, (_, part) => departureText(departure, part));
}

function isInternal(record: TraceRecord): boolean {
  const type = record.kind === 'event' ? record.event.type : '';
  return type.startsWith('xstate.') && !type.startsWith('xstate.error.');
}

function belongsTo(name: string, actor: string): boolean {
  return name === actor || name.startsWith(`${actor}/`);
}

/** A row is short; the details have the whole path. */
function nameOf(file: string): string {
  return file.slice(file.lastIndexOf('/') + 1);
}
