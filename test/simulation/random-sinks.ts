/**
 * The log and the trace of a simulated agent: the program's real sinks, with outlets that fail as scheduled. They use a separate clock synchronized
 * with the simulation's, and must not affect the simulation.
 */
import { agentLog } from '../../src/agent/status/agent-log.ts';
import { agentStates } from '../../src/agent/status/agent-states.ts';
import { reportLostLines } from '../../src/cli/flags/log-flags.ts';
import { traceListener } from '../../src/cli/flags/trace-flags.ts';
import type { InvariantViolation } from '../../src/debugger/explore/world.ts';
import { logRecords } from '../../src/runtime/actors/log-records.ts';
import { messageOf } from '../../src/runtime/errors.ts';
import { LineSink, type LineSinkOptions, type SinkClock } from '../../src/runtime/output/line-sink.ts';
import { createLogger } from '../../src/runtime/output/log.ts';
import type { Recorder } from '../../src/runtime/trace/recorder.ts';
import type { TraceSink } from '../../src/runtime/trace/trace.ts';
import { type TraceFile, traceFile } from '../../src/runtime/trace/trace-file.ts';
import { FailingOutlet } from './failing-outlet.ts';
import type { SinkFault } from './random-schedule.ts';
import { VirtualClock } from './virtual-clock.ts';

/** Rules for a sink, whatever its outlet does. */
export const sinkRules = {
  throws: 'no write to a sink throws',
  waits: 'no write to a sink waits',
  bounded: 'what waits for a sink is bounded',
  reported: 'each line is written in order, or the log counts it as lost after the sink recovers',
} as const;

/** The program's real sink, unless a test replaces it. */
export interface SinkParts {
  readonly logSink?: (options: LineSinkOptions) => LineSink;
  readonly logLosses?: typeof reportLostLines;
}

/** Small, so that a run of a few minutes loses lines. */
const maxBytes = { log: 2_000, trace: 20_000 };
const minRecordBytes = 60;
/** One attempt for a write, one for the report of a loss; twice if the outlet must be reopened. */
const maxRefused = 4;
/** More than the longest time between two attempts. */
const recoveryMs = 60_000;
const lossLine = /\toutput lines lost {2}output=log {2}lines=(\d+) /;
/** A file that always exists and that no run writes. */
const noFile = '/dev/null';

export class RandomSinks {
  readonly violations: InvariantViolation[] = [];
  readonly #now: () => number;
  readonly #clock = new VirtualClock();
  readonly #outlets = { log: new FailingOutlet(false), trace: new FailingOutlet(true) };
  readonly #log: LineSink;
  readonly #trace: TraceFile;
  /** Lines of the log, including reports of losses. */
  readonly #inputLines: string[] = [];
  #maxLineBytes = 0;
  /** Records of the trace: written, reported as lost, and written at the end of the last event loop iteration. */
  #records = 0;
  #recordsReported = 0;
  #recordsFlushed = 0;
  #maxRecordsPerTurn = 0;
  readonly #logLosses: typeof reportLostLines;
  readonly #logger = createLogger({ outputLevel: 'default:debug', write: (line) => this.#writeLog(line) });

  /** @param now time of the world */
  constructor(now: () => number, parts: SinkParts = {}) {
    this.#now = now;
    const { logSink = (options) => new LineSink(options) } = parts;
    this.#logLosses = parts.logLosses ?? reportLostLines;
    this.#log = logSink({ open: this.#outlets.log.open, clock: this.#clockOf('log'), maxBytes: maxBytes.log });
    this.#logLosses(this.#log, 'log', this.#logger);
    const { failed, recovered } = traceListener('agent.trace', this.#logger);
    this.#trace = traceFile(noFile, {
      sink: { open: this.#outlets.trace.open, clock: this.#clockOf('trace'), maxBytes: maxBytes.trace },
      listener: {
        failed: (error, printing) => failed?.(error, printing),
        recovered: (loss) => {
          this.#recordsReported += loss?.lines ?? 0;
          recovered?.(loss);
        },
      },
    });
  }

  readonly traceSink: TraceSink = {
    write: (line) => {
      if ('seq' in line) this.#records++;
      this.#trace.write(line);
    },
    flush: () => {},
    close: () => {},
  };

  /** Connects the log to an agent's recorder, as the program does. */
  logFrom(recorder: Recorder): void {
    logRecords(recorder, this.#logger.scope('agent'), {
      states: agentStates,
      entry: agentLog(),
    });
  }

  beginFault(fault: SinkFault): void {
    this.#judgeTraceBound();
    const outlet = this.#outlets[fault.outlet];
    if (fault.kind === 'moved away') {
      outlet.moveAway();
      return;
    }
    outlet.beginFault(fault);
    this.#clock.setTimeout(() => outlet.endFault(fault), fault.forMs);
  }

  /** Runs after each event loop iteration. */
  runTimers(): void {
    this.#clock.advance(Math.max(0, this.#now() - this.#clock.now()));
    this.#maxRecordsPerTurn = Math.max(this.#maxRecordsPerTurn, this.#records - this.#recordsFlushed);
    this.#recordsFlushed = this.#records;
    this.#guardWrite('trace', () => this.#trace.flush());
  }

  /** Checks, after all faults have ended, that losses are reported. */
  endFaults(): void {
    this.runTimers();
    this.#judgeTraceBound();
    for (const outlet of [this.#outlets.log, this.#outlets.trace]) outlet.endFault();
    this.#clock.advance(recoveryMs);
    this.#judgeLog();
    this.#judgeTrace();
  }

  get figures(): { lines: number; lost: number; records: number; recordsLost: number } {
    return {
      lines: this.#inputLines.length,
      lost: this.#log.lost,
      records: this.#records,
      recordsLost: this.#trace.lines.lost,
    };
  }

  #clockOf(name: 'log' | 'trace'): SinkClock {
    const clock = this.#clock;
    return {
      now: clock.now,
      after: (ms, fire) => {
        const id = clock.setTimeout(() => this.#guardWrite(name, fire), ms);
        return () => clock.clearTimeout(id);
      },
    };
  }

  #writeLog(line: string): void {
    this.#inputLines.push(line);
    this.#maxLineBytes = Math.max(this.#maxLineBytes, Buffer.byteLength(line));
    this.#guardWrite('log', () => this.#log.write(line));
    const { waitingBytes } = this.#log;
    if (waitingBytes > maxBytes.log + this.#maxLineBytes)
      this.#recordViolation('bounded', `${waitingBytes} bytes of the log wait`);
  }

  #guardWrite(name: 'log' | 'trace', write: () => void): void {
    const outlet = this.#outlets[name];
    outlet.takeRefused();
    try {
      write();
    } catch (error) {
      this.#recordViolation('throws', `${name}: ${messageOf(error)}`);
    }
    const refusedCount = outlet.takeRefused();
    if (refusedCount > maxRefused) this.#recordViolation('waits', `${name}: ${refusedCount} tries without a pause`);
  }

  #judgeTraceBound(): void {
    const { waiting } = this.#trace.lines;
    const maxLost = maxBytes.trace / minRecordBytes + this.#maxRecordsPerTurn + 1;
    if (waiting > maxLost) this.#recordViolation('bounded', `${waiting} records wait`);
  }

  #judgeLog(): void {
    const [text] = this.#outlets.log.texts();
    const outputLines = text!.split(/(?<=\n)/).filter(Boolean);
    let next = 0;
    for (const line of outputLines) {
      const lostCount = line === this.#inputLines[next] ? 0 : Number(lossLine.exec(line)?.[1] ?? Number.NaN);
      next += lostCount;
      if (this.#inputLines[next++] !== line) {
        this.#recordViolation('reported', `line ${next}: ${line}`);
        return;
      }
    }
    if (next < this.#inputLines.length)
      this.#recordViolation('reported', `${this.#inputLines.length - next} lines are missing at the end`);
  }

  #judgeTrace(): void {
    const files = this.#outlets.trace.texts().map((text) => text.split('\n').slice(0, -1));
    const lines = files.flat();
    const seqs = lines.flatMap((line) => /^\{"seq":(\d+),/.exec(line)?.slice(1) ?? []).map(Number);
    if (files.some(([first]) => first !== undefined && !first.startsWith('{"kind":"header"')))
      this.#recordViolation('reported', 'a file of the trace does not begin with a header');
    if (seqs.some((seq, i) => i > 0 && seq <= seqs[i - 1]!))
      this.#recordViolation('reported', 'records are not in their order');
    if (this.#records !== seqs.length + this.#recordsReported) {
      const counts = `${this.#records} records: ${seqs.length} written, ${this.#recordsReported} reported as lost`;
      this.#recordViolation('reported', counts);
    }
  }

  #recordViolation(rule: keyof typeof sinkRules, detail: string): void {
    this.violations.push({ invariant: sinkRules[rule], detail });
  }
}
