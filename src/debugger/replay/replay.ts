/**
 * Sends the recorded external input to the machines, in virtual time, and compares their behaviour with the recording,
 * record by record.
 */
import type { AnyStateMachine } from 'xstate';
import { boundedData } from '../../runtime/trace/bounded-data.ts';
import { createRecorder, type Recorder } from '../../runtime/trace/recorder.ts';
import { recordRedactor } from '../../runtime/trace/redact.ts';
import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import { differingField } from './compare-records.ts';
import { Outside } from './outside.ts';
import { ReplayedActors } from './replayed-actors.ts';
import { TraceToReplay } from './replayed-trace.ts';

export interface Difference {
  readonly seq: number;
  readonly actor: string;
  /** Absent if the machines do nothing more in the recording. */
  readonly recorded?: TraceRecord;
  /** Absent if the machines do nothing. It has the number of the recorded record. */
  readonly replayed?: TraceRecord;
  /** A JSON Pointer into the record (`/event/epoch`). */
  readonly field?: string;
  /** Why the recorded action could not be repeated. */
  readonly why?: string;
  /** The preceding records, which are equal in recording and replay. */
  readonly before: readonly TraceRecord[];
  /** The common cause of `recorded` and `replayed`, if it is not in `before`. */
  readonly cause?: TraceRecord;
}

export interface ReplayReport {
  readonly records: number;
  readonly compared: number;
  readonly difference?: Difference;
  /** Possible causes of a false difference. */
  readonly warnings: readonly string[];
}

const maxPrecedingRecords = 4;

/**
 * @param machines the root machines, and replacements of machines with the same ID
 * @throws ChartpilotError TRACE_INVALID if the trace cannot be replayed, FLAG_INVALID if the machine of a root is missing
 */
export function replay(
  header: TraceHeader,
  records: readonly TraceRecord[],
  machines: readonly AnyStateMachine[],
): ReplayReport {
  const machineById = new Map(machines.map((machine) => [machine.id, machine]));
  const recording = new TraceToReplay(header, records, machineById);
  const report = new Replay(header, recording, machineById).run();
  const { seq, recorded } = report.difference ?? {};
  if (seq === undefined || recorded !== undefined || !recording.mayBeTruncatedAt(seq - 1)) return report;
  // A truncated trace may lack the later record whose `cause` shows that this record was written during processing.
  recording.markEarlyFrom(seq - 1);
  const secondReport = new Replay(header, recording, machineById).run();
  return secondReport.difference === undefined ? secondReport : report;
}

class Replay {
  readonly #recording: TraceToReplay;
  readonly #outside: Outside;
  readonly #recorder: Recorder;
  readonly #redact: ReturnType<typeof recordRedactor>;
  #index = 0;
  #lastSentIndex = -1;
  #comparedCount = 0;
  #nowMs = 0;
  #difference: Difference | undefined;
  readonly #warnings: string[] = [];

  constructor(header: TraceHeader, recording: TraceToReplay, machines: ReadonlyMap<string, AnyStateMachine>) {
    this.#recording = recording;
    const recorder = createRecorder({
      program: header.program,
      now: () => this.#nowMs,
      ...(header.omits !== undefined && { omits: header.omits }),
      ...(header.foreign === true && { foreign: true, data: boundedData }),
    });
    this.#recorder = recorder;
    recorder.observe((record) => this.#compareNext(record));
    // The current environment must not affect the redaction of recorded values.
    this.#redact = recordRedactor({ full: header.level === 'full' });
    const actors = new ReplayedActors({
      machines,
      foreign: header.foreign === true,
      recorder,
      now: () => this.#nowMs,
      idOfUnnamed: () => this.#recording.numberedIdAt(this.#index),
      onMoment: () => this.#sendEarlyInput(),
      failureOf: (actor) => this.#recording.failureAt(this.#index, actor),
    });
    this.#outside = new Outside(recording, actors, (warning) => this.#warnings.push(warning));
  }

  run(): ReplayReport {
    const { records, notes } = this.#recording;
    this.#skipOmitted();
    while (this.#index < records.length && this.#difference === undefined) {
      const index = this.#index;
      const reason = this.#lastSentIndex === index ? 'the effect is still running' : this.#sendRecord(index);
      if (this.#index === index && this.#difference === undefined) {
        this.#reportDifference({ recorded: records[index]!, ...(reason !== undefined && { why: reason }) });
      }
    }
    return {
      records: records.length,
      compared: this.#comparedCount,
      ...(this.#difference !== undefined && { difference: this.#difference }),
      warnings: [...notes, ...this.#warnings],
    };
  }

  #compareNext(rawRecord: TraceRecord): void {
    const recordedRecord = this.#recording.records[this.#index];
    if (recordedRecord === undefined || this.#difference !== undefined) return;
    if (differingField(recordedRecord, rawRecord) === undefined) {
      this.#advance();
      return;
    }
    // Redaction takes time and rarely affects the comparison, therefore it is done only after a difference.
    const replayedRecord = this.#redact(rawRecord);
    const field = differingField(recordedRecord, replayedRecord);
    if (field === undefined) {
      this.#advance();
      return;
    }
    const comparableRecord = { ...replayedRecord, seq: recordedRecord.seq, t: recordedRecord.t };
    // If the next record is from outside, the machines did something additional.
    if (this.#outside.isOutsideAction(this.#index)) this.#reportDifference({ replayed: comparableRecord });
    else
      this.#reportDifference({
        recorded: recordedRecord,
        replayed: comparableRecord,
        ...(recordedRecord.kind === replayedRecord.kind && { field }),
      });
  }

  #sendRecord(index: number): string | undefined {
    this.#nowMs = this.#recording.records[index]!.t;
    // The start may produce this record immediately.
    if (this.#outside.startRootBefore(index) && this.#index !== index) return undefined;
    this.#lastSentIndex = index;
    const reason = this.#outside.repeatAction(index);
    this.#recorder.settle();
    return reason;
  }

  #advance(): void {
    this.#comparedCount++;
    this.#index++;
    this.#skipOmitted();
  }

  #reportDifference(differenceFields: Pick<Difference, 'recorded' | 'replayed' | 'field' | 'why'>): void {
    const { records } = this.#recording;
    const { seq } = records[this.#index]!;
    const precedingRecords = records.slice(Math.max(0, this.#index - maxPrecedingRecords), this.#index);
    const { cause: number = 0 } = (differenceFields.recorded ?? {}) as { cause?: number };
    const cause =
      number < (precedingRecords[0]?.seq ?? 0) ? records.find((record) => record.seq === number) : undefined;
    this.#difference = {
      seq,
      actor: actingActor(differenceFields.replayed ?? differenceFields.recorded!),
      ...differenceFields,
      before: precedingRecords,
      ...(cause !== undefined && { cause }),
    };
  }

  #skipOmitted(): void {
    while (this.#recording.isOmitted(this.#index)) this.#index++;
  }

  /** Sends the input that was recorded while a machine was processing. */
  #sendEarlyInput(): void {
    while (
      this.#difference === undefined &&
      this.#lastSentIndex !== this.#index &&
      this.#recording.isEarlyRecord(this.#index)
    ) {
      const index = this.#index;
      if (!this.#outside.isOutsideAction(index) || this.#outside.isRepeatedByEffect(index)) return;
      this.#sendRecord(index);
      if (this.#index === index) return;
    }
  }
}

function actingActor(record: TraceRecord): string {
  if (record.kind === 'event') return record.from;
  return record.kind === 'spawn' ? (record.parent ?? record.actor) : record.actor;
}
