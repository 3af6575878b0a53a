/** Rows of the sequence diagram, which grow with the trace and are never rebuilt. */
import type { Deviation } from '../../src/debugger/check/check.ts';
import { outsideActor, unknownParent } from '../../src/debugger/check/message.ts';
import { withDoubledCapacity } from '../model/recording/record-store.ts';
import type { PageRecording } from '../model/recording/recording.ts';
import { type Lifeline, Lifelines } from './sequence-lifelines.ts';

/** `ended`: stopped or failed. `done`: final output sent to the parent. */
export type EntryKind = 'event' | 'spawn' | 'timer' | 'done' | 'ended' | 'state' | 'effect';

export interface Entry {
  readonly index: number;
  readonly kind: EntryKind;
  readonly fromActor: string;
  readonly toActor: string;
  readonly from: Lifeline;
  readonly to: Lifeline;
}

const kinds: readonly EntryKind[] = ['event', 'spawn', 'timer', 'done', 'ended', 'state', 'effect'];
const initialCapacity = 1_024;

/** An entry is stored in columns, and built as an object on access. */
export class SequenceIndex {
  readonly recording: PageRecording;
  readonly #lifelines: Lifelines;
  #length = 0;
  #recordIndexes = new Int32Array(initialCapacity);
  #kinds = new Uint8Array(initialCapacity);
  #fromLifelines = new Int32Array(initialCapacity);
  #to = new Int32Array(initialCapacity);
  #read = 0;

  constructor(recording: PageRecording) {
    this.recording = recording;
    this.#lifelines = new Lifelines((actor) => recording.machineOf(actor) !== undefined);
    for (const { actor } of recording.header.actors ?? []) this.#lifelines.addLifeline(actor, -1);
    this.grow();
  }

  get length(): number {
    return this.#length;
  }

  get lifelines(): readonly Lifeline[] {
    return this.#lifelines.allLifelines;
  }

  entry(entryIndex: number): Entry {
    const index = this.#recordIndexes[entryIndex]!;
    const kind = kinds[this.#kinds[entryIndex]!]!;
    const subject = this.recording.subjectAt(index);
    const otherActor = this.recording.otherActorAt(index) ?? subject;
    const isFromOtherActor = kind === 'event' || kind === 'spawn';
    return {
      index,
      kind,
      fromActor: isFromOtherActor ? otherActor : subject,
      toActor: isFromOtherActor ? subject : otherActor,
      from: this.from(entryIndex),
      to: this.to(entryIndex),
    };
  }

  placeOf(entryIndex: number): number {
    return this.#recordIndexes[entryIndex]!;
  }

  kindOf(entryIndex: number): EntryKind {
    return kinds[this.#kinds[entryIndex]!]!;
  }

  from(entryIndex: number): Lifeline {
    return this.#lifelines.allLifelines[this.#fromLifelines[entryIndex]!]!;
  }

  to(entryIndex: number): Lifeline {
    return this.#lifelines.allLifelines[this.#to[entryIndex]!]!;
  }

  grow(): void {
    for (; this.#read < this.recording.length; this.#read++) this.#addRecord(this.#read);
  }

  #addRecord(index: number): void {
    const { recording } = this;
    const kind = recording.kindAt(index);
    if (kind === 'log' || kind === 'step' || kind === 'timer-started') return;
    const subject = recording.subjectAt(index);
    const otherActor = recording.otherActorAt(index);
    switch (kind) {
      case 'event':
        this.#addEntry(index, kind, this.#lifelineFor(otherActor!, index), this.#lifelineFor(subject, index));
        break;
      case 'spawn': {
        const spawnedLifeline = this.#lifelines.addLifeline(subject, index);
        // No actor in the trace spawns or ends a root actor.
        this.#addEntry(
          index,
          kind,
          otherActor === undefined || otherActor === outsideActor
            ? spawnedLifeline
            : this.#lifelineFor(otherActor, index),
          spawnedLifeline,
        );
        break;
      }
      case 'stop': {
        const lifeline = this.#lifelineFor(subject, index);
        const isWithoutPeer = otherActor === undefined || otherActor === outsideActor || otherActor === unknownParent;
        this.#addEntry(
          index,
          otherActor === undefined ? 'ended' : 'done',
          lifeline,
          isWithoutPeer ? lifeline : this.#lifelineFor(otherActor, index),
        );
        this.#lifelines.end(subject, index);
        break;
      }
      default: {
        const lifeline = this.#lifelineFor(subject, index);
        this.#addEntry(index, kind === 'timer' || kind === 'effect' ? kind : 'state', lifeline, lifeline);
      }
    }
  }

  #lifelineFor(actor: string, index: number): Lifeline {
    return this.#lifelines.lifelineOf(actor, actor === outsideActor ? -1 : index);
  }

  #addEntry(index: number, kind: EntryKind, from: Lifeline, to: Lifeline): void {
    if (this.#length === this.#recordIndexes.length) {
      this.#recordIndexes = withDoubledCapacity(this.#recordIndexes);
      this.#kinds = withDoubledCapacity(this.#kinds);
      this.#fromLifelines = withDoubledCapacity(this.#fromLifelines);
      this.#to = withDoubledCapacity(this.#to);
    }
    this.#recordIndexes[this.#length] = index;
    this.#kinds[this.#length] = kinds.indexOf(kind);
    this.#fromLifelines[this.#length] = from.id;
    this.#to[this.#length] = to.id;
    this.#length++;
  }
}

/** Deviations are always shown. */
export interface RowFilter {
  /** Only records about this actor or its effects. */
  readonly actor?: string;
  /** State changes and effects between the messages. */
  readonly states: boolean;
  /** XState's internal events, such as `xstate.done.actor.…`. */
  readonly internal: boolean;
}

export interface Row {
  readonly entry: Entry;
  /** 0 for the entry; lines from 1 are below it and show expected messages. */
  readonly line: number;
}

const maxExpected = 4;

export class SequenceRows {
  readonly index: SequenceIndex;
  readonly filter: RowFilter;
  readonly #entries: number[] = [];
  readonly #lineNumbers: number[] = [];
  readonly #usedLifelines = new Set<Lifeline>();
  #read = 0;
  #nextDeviation = 0;

  constructor(index: SequenceIndex, filter: RowFilter) {
    this.index = index;
    this.filter = filter;
    this.grow();
  }

  get length(): number {
    return this.#entries.length;
  }

  get lifelines(): ReadonlySet<Lifeline> {
    return this.#usedLifelines;
  }

  row(rowIndex: number): Row {
    return { entry: this.index.entry(this.#entries[rowIndex]!), line: this.#lineNumbers[rowIndex]! };
  }

  grow(): void {
    const { index } = this;
    for (; this.#read < index.length; this.#read++) {
      const deviationLineCount = this.#countDeviationLines(index.placeOf(this.#read));
      if (deviationLineCount === 0 && !this.#isShown(this.#read)) continue;
      this.#usedLifelines.add(index.from(this.#read)).add(index.to(this.#read));
      for (let line = 0; line <= deviationLineCount; line++) {
        this.#entries.push(this.#read);
        this.#lineNumbers.push(line);
      }
    }
  }

  /** Calls must be in the order of records. */
  #countDeviationLines(index: number): number {
    const { deviations } = this.index.recording;
    let lines = 0;
    for (; (deviations[this.#nextDeviation]?.index ?? Number.POSITIVE_INFINITY) <= index; this.#nextDeviation++) {
      const nextDeviation = deviations[this.#nextDeviation]!;
      if (nextDeviation.index === index) lines += expectedLineCount(nextDeviation.deviation);
    }
    return lines;
  }

  lifelinesWithin(first: number, last: number): ReadonlySet<Lifeline> {
    const usedLifelines = new Set<Lifeline>();
    const end = this.rowsBefore(last + 1);
    for (let row = this.rowsBefore(first); row < end; row++) {
      const entryIndex = this.#entries[row]!;
      usedLifelines.add(this.index.from(entryIndex)).add(this.index.to(entryIndex));
    }
    return usedLifelines;
  }

  /** The row of the record, or of the last record before it that has a row; -1 if no such record exists. */
  rowOf(index: number): number {
    const rowCount = this.rowsBefore(index + 1);
    return rowCount === 0 ? -1 : rowCount - 1 - this.#lineNumbers[rowCount - 1]!;
  }

  /** The result is the index of the record's row if it has one. */
  rowsBefore(index: number): number {
    let lowRow = 0;
    let highRow = this.#entries.length;
    while (lowRow < highRow) {
      const middle = (lowRow + highRow) >> 1;
      if (this.#indexAt(middle) < index) lowRow = middle + 1;
      else highRow = middle;
    }
    return lowRow;
  }

  #indexAt(row: number): number {
    return this.index.placeOf(this.#entries[row]!);
  }

  #isShown(entryIndex: number): boolean {
    const { actor, states, internal } = this.filter;
    const kind = this.index.kindOf(entryIndex);
    if (!states && (kind === 'state' || kind === 'effect')) return false;
    const { recording } = this.index;
    const recordIndex = this.index.placeOf(entryIndex);
    if (!internal && kind === 'event' && isInternal(recording.typeAt(recordIndex)!)) return false;
    if (actor === undefined || isOwnedBy(recording.subjectAt(recordIndex), actor)) return true;
    const otherActor = recording.otherActorAt(recordIndex);
    return otherActor !== undefined && isOwnedBy(otherActor, actor);
  }
}

function expectedLineCount({ expected }: Deviation): number {
  return 1 + Math.min(expected.length, maxExpected + 1);
}

/** The deviation of a line below a row, and the index of the line within the deviation. */
export function deviationOfLine(
  deviations: readonly Deviation[],
  line: number,
): { deviation: Deviation; lineIndex: number } | undefined {
  let partIndex = line - 1;
  for (const deviation of deviations) {
    const lineCount = expectedLineCount(deviation);
    if (partIndex < lineCount) return { deviation, lineIndex: partIndex };
    partIndex -= lineCount;
  }
  return undefined;
}

/** The kind of the deviation, or an expected arrow. */
export function deviationLineText(deviation: Deviation, partIndex: number): string {
  const { kind, diagram, expected } = deviation;
  if (partIndex === 0) {
    if (kind === 'undeclared') return 'undeclared: no diagram of these actors has this message';
    const kindText = kind === 'out-of-order' ? 'out of order' : 'unexpected';
    const activation = diagram?.n === undefined ? '' : `, N = ${diagram.n}`;
    const startText = diagram?.startedAt === undefined ? '' : `, started at #${diagram.startedAt}`;
    return `${kindText}: ${fileNameOf(diagram?.file ?? '')}:${diagram?.line}${activation}${startText}`;
  }
  if (partIndex > maxExpected) return `or ${expected.length - maxExpected} more`;
  const { from, to, type, file, line } = expected[partIndex - 1]!;
  return `${partIndex === 1 ? 'expected' : 'or'} ${from} → ${to}: ${type}  (${fileNameOf(file)}:${line})`;
}

export function deviationLineTexts(deviation: Deviation): string[] {
  return Array.from({ length: expectedLineCount(deviation) }, (_, partIndex) =>
    deviationLineText(deviation, partIndex),
  );
}

function isInternal(type: string): boolean {
  return type.startsWith('xstate.') && !type.startsWith('xstate.error.');
}

function isOwnedBy(name: string, actor: string): boolean {
  return name === actor || name.startsWith(`${actor}/`);
}

/** Rows show the file name; the details show the path. */
function fileNameOf(file: string): string {
  return file.slice(file.lastIndexOf('/') + 1);
}
