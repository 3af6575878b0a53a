/** Columns (about 60 bytes per record) store frequently read fields; lines are stored as text and parsed on access. */
import { MessageReader } from '../../../src/debugger/check/message.ts';
import { firstIndex, type RecordKind, type RecordList } from '../../../src/debugger/trace/record-list.ts';
import { recordKinds } from '../../../src/debugger/trace/trace-line.ts';
import type { TraceHeader, TraceRecord } from '../../../src/runtime/trace/trace.ts';

const blockLines = 256;
/** A view reads the same and neighbouring records several times. */
const maxCachedRecords = 4_096;
const initialCapacity = 1_024;
const noActor = -1;

const numberOfKind = new Map<RecordKind, number>(recordKinds.map((kind, number) => [kind, number]));

/** A single index is a number, because most of a million names have one or two, and an array reserves more space. */
type Places = number | readonly number[];

const noPlaces: Places = [];

function withPlace(actorPlaces: Places, index: number): Places {
  if (typeof actorPlaces === 'number') return [actorPlaces, index];
  if (actorPlaces === noPlaces) return index;
  (actorPlaces as number[]).push(index);
  return actorPlaces;
}

export class RecordStore implements RecordList {
  #length = 0;
  #seqs = new Float64Array(initialCapacity);
  #times = new Float64Array(initialCapacity);
  #kinds = new Uint8Array(initialCapacity);
  /** Numbers of names: the actor that the record is about, the other actor of a message, and its type in XState or the chart. */
  #subjects = new Int32Array(initialCapacity);
  #otherActors = new Int32Array(initialCapacity);
  #types = new Int32Array(initialCapacity);
  /** First and last record with this one as cause, and the next record with the same cause. */
  #firstConsequence = new Int32Array(initialCapacity);
  #lastConsequence = new Int32Array(initialCapacity);
  #nextConsequence = new Int32Array(initialCapacity);
  #lineOffsets = new Int32Array(initialCapacity);
  readonly #blocks: string[] = [];
  #pendingLines: string[] = [];
  readonly #names: string[] = [];
  readonly #numbers = new Map<string, number>();
  /** Indexes of the records about a name, by its number. */
  readonly #placesByActor: Places[] = [];
  /** Indexes of the records that spawn the actor or change its state. */
  readonly #changes: Places[] = [];
  readonly #messages: MessageReader;
  /** Records whose cause is missing from the trace or appears later, by cause. */
  readonly #consequencesOfUnknownCause = new Map<number, number[]>();
  readonly #cachedPlaces = new Int32Array(maxCachedRecords).fill(noActor);
  readonly #cachedRecords: TraceRecord[] = [];

  constructor(header: Pick<TraceHeader, 'actors'>) {
    this.#messages = new MessageReader(header.actors);
  }

  get length(): number {
    return this.#length;
  }

  /**
   * @param record its names are replaced by the stored strings, which speeds up maps of names
   * @param line its text in the current format
   */
  append(record: TraceRecord, line: string): void {
    const index = this.#length;
    if (index === this.#seqs.length) this.#grow();
    this.#seqs[index] = record.seq;
    this.#times[index] = record.t;
    this.#kinds[index] = numberOfKind.get(record.kind)!;
    const actorNumber = this.#numberOf(record.kind === 'event' ? record.to : record.actor);
    const name = this.#names[actorNumber]!;
    if (record.kind === 'event') record.to = name;
    else record.actor = name;
    this.#subjects[index] = actorNumber;
    const message = this.#messages.read(record);
    this.#otherActors[index] =
      message === undefined || record.kind === 'timer'
        ? noActor
        : this.#numberOf(record.kind === 'stop' ? message.to : message.from);
    if (record.kind === 'event') record.from = this.#names[this.#otherActors[index]]!;
    const type = typeOf(record);
    this.#types[index] = type === undefined ? noActor : this.#numberOf(type);
    this.#placesByActor[actorNumber] = withPlace(this.#placesByActor[actorNumber]!, index);
    if (isStateChange(record.kind)) this.#changes[actorNumber] = withPlace(this.#changes[actorNumber]!, index);
    this.#firstConsequence[index] = noActor;
    this.#nextConsequence[index] = noActor;
    this.#length++;
    if ('cause' in record && record.cause !== undefined) this.#linkConsequence(record.cause, index);
    this.#keepLine(line, index);
  }

  recordAt(index: number): TraceRecord | undefined {
    if (index < 0 || index >= this.#length) return undefined;
    const slot = index % maxCachedRecords;
    if (this.#cachedPlaces[slot] !== index) {
      // The line is valid, because it was parsed before it was appended.
      this.#cachedRecords[slot] = JSON.parse(this.lineAt(index)) as TraceRecord;
      this.#cachedPlaces[slot] = index;
    }
    return this.#cachedRecords[slot];
  }

  lineAt(index: number): string {
    const offsetInBlock = index % blockLines;
    const block = this.#blocks[(index - offsetInBlock) / blockLines];
    if (block === undefined) return this.#pendingLines[offsetInBlock]!;
    return block.slice(
      this.#lineOffsets[index],
      offsetInBlock === blockLines - 1 ? undefined : this.#lineOffsets[index + 1]! - 1,
    );
  }

  seqAt(index: number): number | undefined {
    return index >= 0 && index < this.#length ? this.#seqs[index] : undefined;
  }

  timeAt(index: number): number | undefined {
    return index >= 0 && index < this.#length ? this.#times[index] : undefined;
  }

  kindAt(index: number): RecordKind {
    return recordKinds[this.#kinds[index]!]!;
  }

  /** The actor that performed the action, or received the message. */
  subjectAt(index: number): string {
    return this.#names[this.#subjects[index]!]!;
  }

  /** `undefined` for messages without a receiver, and for other records. */
  otherActorAt(index: number): string | undefined {
    return this.#names[this.#otherActors[index]!];
  }

  /** Type of an event, name of a timer, or event of a step. */
  typeAt(index: number): string | undefined {
    return this.#names[this.#types[index]!];
  }

  indexOf(seq: number): number | undefined {
    const lastIndex = this.#length - 1;
    // If no later record is missing, `seq` and index differ by a constant.
    const expectedIndex = lastIndex - ((this.#seqs[lastIndex] ?? 0) - seq);
    if (expectedIndex >= 0 && expectedIndex <= lastIndex && this.#seqs[expectedIndex] === seq) return expectedIndex;
    const index = firstIndex(this.#length, (position) => this.#seqs[position]! >= seq);
    return index < this.#length && this.#seqs[index] === seq ? index : undefined;
  }

  firstAfter(t: number): number {
    return firstIndex(this.#length, (position) => this.#times[position]! > t);
  }

  lastIndexAbout(actor: string, kinds: readonly RecordKind[], endIndex: number, from = 0): number | undefined {
    const indexesAbout = this.#placesAbout(actor, kinds);
    for (
      let position = firstIndex(indexesAbout.length, (i) => indexesAbout[i]! >= endIndex) - 1;
      position >= 0 && indexesAbout[position]! >= from;
      position--
    ) {
      if (kinds.includes(this.kindAt(indexesAbout[position]!))) return indexesAbout[position];
    }
    return undefined;
  }

  nextIndexAbout(actor: string, kinds: readonly RecordKind[], previousIndex: number): number | undefined {
    const indexesAbout = this.#placesAbout(actor, kinds);
    for (
      let position = firstIndex(indexesAbout.length, (i) => indexesAbout[i]! > previousIndex);
      position < indexesAbout.length;
      position++
    ) {
      if (kinds.includes(this.kindAt(indexesAbout[position]!))) return indexesAbout[position];
    }
    return undefined;
  }

  /** Sorted indexes of the records with this one as cause. */
  consequencesOf(seq: number): readonly number[] {
    const laterConsequences = this.#consequencesOfUnknownCause.get(seq) ?? [];
    const index = this.indexOf(seq);
    const consequenceIndexes: number[] = [];
    for (
      let consequenceIndex = index === undefined ? noActor : this.#firstConsequence[index]!;
      consequenceIndex !== noActor;
      consequenceIndex = this.#nextConsequence[consequenceIndex]!
    ) {
      consequenceIndexes.push(consequenceIndex);
    }
    return laterConsequences.length === 0
      ? consequenceIndexes
      : [...consequenceIndexes, ...laterConsequences].sort((a, b) => a - b);
  }

  /** May include records of other kinds. */
  #placesAbout(actor: string, kinds: readonly RecordKind[]): readonly number[] {
    const number = this.#numbers.get(actor);
    if (number === undefined) return [];
    const actorPlaces = (kinds.every(isStateChange) ? this.#changes : this.#placesByActor)[number]!;
    return typeof actorPlaces === 'number' ? [actorPlaces] : actorPlaces;
  }

  #numberOf(name: string): number {
    const cachedNumber = this.#numbers.get(name);
    if (cachedNumber !== undefined) return cachedNumber;
    const number = this.#names.push(name) - 1;
    this.#numbers.set(name, number);
    this.#placesByActor.push(noPlaces);
    this.#changes.push(noPlaces);
    return number;
  }

  #linkConsequence(cause: number, index: number): void {
    const from = this.indexOf(cause);
    if (from === undefined || from === index) {
      const laterConsequences = this.#consequencesOfUnknownCause.get(cause);
      if (laterConsequences === undefined) this.#consequencesOfUnknownCause.set(cause, [index]);
      else laterConsequences.push(index);
    } else if (this.#firstConsequence[from] === noActor) {
      this.#firstConsequence[from] = index;
      this.#lastConsequence[from] = index;
    } else {
      this.#nextConsequence[this.#lastConsequence[from]!] = index;
      this.#lastConsequence[from] = index;
    }
  }

  #keepLine(line: string, index: number): void {
    const previousLength = this.#pendingLines.length === 0 ? undefined : this.#pendingLines.at(-1)!.length;
    this.#lineOffsets[index] = previousLength === undefined ? 0 : this.#lineOffsets[index - 1]! + previousLength + 1;
    this.#pendingLines.push(line);
    if (this.#pendingLines.length < blockLines) return;
    this.#blocks.push(this.#pendingLines.join('\n'));
    this.#pendingLines = [];
  }

  #grow(): void {
    this.#seqs = withDoubledCapacity(this.#seqs);
    this.#times = withDoubledCapacity(this.#times);
    this.#kinds = withDoubledCapacity(this.#kinds);
    this.#subjects = withDoubledCapacity(this.#subjects);
    this.#otherActors = withDoubledCapacity(this.#otherActors);
    this.#types = withDoubledCapacity(this.#types);
    this.#firstConsequence = withDoubledCapacity(this.#firstConsequence);
    this.#lastConsequence = withDoubledCapacity(this.#lastConsequence);
    this.#nextConsequence = withDoubledCapacity(this.#nextConsequence);
    this.#lineOffsets = withDoubledCapacity(this.#lineOffsets);
  }
}

export function withDoubledCapacity<Values extends Float64Array | Int32Array | Uint8Array>(values: Values): Values {
  const doubledValues = new (values.constructor as new (length: number) => Values)(2 * values.length);
  doubledValues.set(values);
  return doubledValues;
}

function isStateChange(kind: RecordKind): boolean {
  return kind === 'spawn' || kind === 'transition';
}

function typeOf(record: TraceRecord): string | undefined {
  switch (record.kind) {
    case 'event':
      return record.event.type;
    case 'timer':
    case 'timer-started':
      return record.timer;
    case 'transition':
    case 'step':
    case 'unexpected':
      return record.on;
    default:
      return undefined;
  }
}
