/**
 * Plays a recording to the machines once more: what came from outside is given to them as it was recorded, in virtual time, and
 * what they do is compared with what they did then, record by record.
 */
import type { AnyStateMachine } from 'xstate';
import { boundedData } from '../../runtime/trace/bounded-data.ts';
import { createRecorder, type Recorder } from '../../runtime/trace/recorder.ts';
import { recordRedactor } from '../../runtime/trace/redact.ts';
import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import { differingField } from './compare-records.ts';
import { Outside } from './outside.ts';
import { ReplayedActors } from './replayed-actors.ts';
import { Recording } from './replayed-trace.ts';

/** The first place where the machines do something else than was recorded. */
export interface Difference {
  /** Number of the recorded record. */
  readonly seq: number;
  /** Whose doing it is. */
  readonly actor: string;
  /** What was recorded; absent where the recording has the machines do nothing more. */
  readonly recorded?: TraceRecord;
  /** What the machines do now; absent where they do nothing. Its number is the recorded one's. */
  readonly replayed?: TraceRecord;
  /** The first field that differs, as a JSON Pointer into the record (`/event/epoch`). */
  readonly field?: string;
  /** Why what was recorded could not be done again. */
  readonly why?: string;
  /** What came before in the recording, oldest first: the same in both. */
  readonly before: readonly TraceRecord[];
  /** What both are the answer to, if the recording says so and it is not among `before`. */
  readonly cause?: TraceRecord;
}

export interface ReplayReport {
  /** In the trace. */
  readonly records: number;
  /** That were found to be the same. */
  readonly compared: number;
  readonly difference?: Difference;
  /** What may lead to a difference that is none. */
  readonly warnings: readonly string[];
}

const shownBefore = 4;

/**
 * @param machines the root machines, and any machine to take the place of one with the same id
 * @throws ChartpilotError TRACE_INVALID when the trace cannot be replayed, FLAG_INVALID when the machine of a root is not given
 */
export function replay(
  header: TraceHeader,
  records: readonly TraceRecord[],
  machines: readonly AnyStateMachine[],
): ReplayReport {
  const byId = new Map(machines.map((machine) => [machine.id, machine]));
  const recording = new Recording(header, records, byId);
  const report = new Replay(header, recording, byId).run();
  const { seq, recorded } = report.difference ?? {};
  if (seq === undefined || recorded !== undefined || !recording.mayBeCutOffAt(seq - 1)) return report;
  // What would tell that it came while a machine was at work may be what was cut off.
  recording.takeAsEarly(seq - 1);
  const other = new Replay(header, recording, byId).run();
  return other.difference === undefined ? other : report;
}

class Replay {
  readonly #recording: Recording;
  readonly #outside: Outside;
  readonly #recorder: Recorder;
  readonly #redact: ReturnType<typeof recordRedactor>;
  /** Place in the recording of the next record to be met. */
  #at = 0;
  /** Place of the last record that was given to the machines. */
  #given = -1;
  #compared = 0;
  #now = 0;
  #difference: Difference | undefined;
  readonly #warnings: string[] = [];

  constructor(header: TraceHeader, recording: Recording, machines: ReadonlyMap<string, AnyStateMachine>) {
    this.#recording = recording;
    const recorder = createRecorder({
      program: header.program,
      now: () => this.#now,
      ...(header.omits !== undefined && { omits: header.omits }),
      ...(header.foreign === true && { foreign: true, data: boundedData }),
    });
    this.#recorder = recorder;
    recorder.observe((record) => this.#meet(record));
    // What the environment holds now is of no concern to what was recorded then.
    this.#redact = recordRedactor({ full: header.level === 'full' });
    const actors = new ReplayedActors({
      machines,
      foreign: header.foreign === true,
      recorder,
      now: () => this.#now,
      idOfUnnamed: () => this.#recording.numberedIdAt(this.#at),
      onMoment: () => this.#giveWhatCameEarly(),
      failureOf: (actor) => this.#recording.failureAt(this.#at, actor),
    });
    this.#outside = new Outside(recording, actors, (warning) => this.#warnings.push(warning));
  }

  run(): ReplayReport {
    const { records, notes } = this.#recording;
    this.#skip();
    while (this.#at < records.length && this.#difference === undefined) {
      const at = this.#at;
      const why = this.#given === at ? 'the effect is still running' : this.#give(at);
      if (this.#at === at && this.#difference === undefined) {
        this.#differ({ recorded: records[at]!, ...(why !== undefined && { why }) });
      }
    }
    return {
      records: records.length,
      compared: this.#compared,
      ...(this.#difference !== undefined && { difference: this.#difference }),
      warnings: [...notes, ...this.#warnings],
    };
  }

  /** Something came of the machines, or of what was given to them. */
  #meet(raw: TraceRecord): void {
    const recorded = this.#recording.records[this.#at];
    if (recorded === undefined || this.#difference !== undefined) return;
    if (differingField(recorded, raw) === undefined) {
      this.#goOn();
      return;
    }
    // Only seldom is it of consequence that a trace has it made safe and small, which takes its time.
    const replayed = this.#redact(raw);
    const field = differingField(recorded, replayed);
    if (field === undefined) {
      this.#goOn();
      return;
    }
    const again = { ...replayed, seq: recorded.seq, t: recorded.t };
    // What follows from outside is not what the machines did instead.
    if (this.#outside.did(this.#at)) this.#differ({ replayed: again });
    else this.#differ({ recorded, replayed: again, ...(recorded.kind === replayed.kind && { field }) });
  }

  /** @returns why that could not be, if it could not */
  #give(at: number): string | undefined {
    this.#now = this.#recording.records[at]!.t;
    // What the start does at once may include this record.
    if (this.#outside.startRootBefore(at) && this.#at !== at) return undefined;
    this.#given = at;
    const why = this.#outside.give(at);
    this.#recorder.settle();
    return why;
  }

  #goOn(): void {
    this.#compared++;
    this.#at++;
    this.#skip();
  }

  #differ(sides: Pick<Difference, 'recorded' | 'replayed' | 'field' | 'why'>): void {
    const { records } = this.#recording;
    const { seq } = records[this.#at]!;
    const before = records.slice(Math.max(0, this.#at - shownBefore), this.#at);
    const { cause: number = 0 } = (sides.recorded ?? {}) as { cause?: number };
    const cause = number < (before[0]?.seq ?? 0) ? records.find((record) => record.seq === number) : undefined;
    this.#difference = {
      seq,
      actor: doerOf(sides.replayed ?? sides.recorded!),
      ...sides,
      before,
      ...(cause !== undefined && { cause }),
    };
  }

  /** Passes over what no machine does. */
  #skip(): void {
    while (this.#recording.isLeftOut(this.#at)) this.#at++;
  }

  /** While a machine is at work: gives it what was recorded to have come then. */
  #giveWhatCameEarly(): void {
    while (this.#difference === undefined && this.#given !== this.#at && this.#recording.cameEarly(this.#at)) {
      const at = this.#at;
      if (!this.#outside.did(at) || this.#outside.awaitsItsMoment(at)) return;
      this.#give(at);
      if (this.#at === at) return;
    }
  }
}

/** Whose doing a record is. */
function doerOf(record: TraceRecord): string {
  if (record.kind === 'event') return record.from;
  return record.kind === 'spawn' ? (record.parent ?? record.actor) : record.actor;
}
