/** An output (file or viewer) can neither end the program nor receive a secret. */
import type { AnyStateMachine } from 'xstate';
import { messageOf } from '../errors.ts';
import { recordRedactor } from './redact.ts';
import { secretsIn } from './secret-texts.ts';
import { machinesOf, statechartOf } from './statechart.ts';
import {
  type TraceHeader,
  type TraceLevel,
  type TraceLine,
  type TraceRecord,
  type TraceSink,
  traceVersion,
} from './trace.ts';

export interface TraceOutputsOptions {
  readonly program: string;
  readonly sinks?: readonly TraceSink[];
  readonly startedAt?: Date;
  readonly pid?: number;
  /** The running machines, for the header; machines that they start by name are included. */
  readonly machines?: readonly AnyStateMachine[];
  /** Default: `standard`. */
  readonly level?: TraceLevel;
  /** Event types that are not recorded. Steps that they cause without a state change are not recorded either. */
  readonly omits?: readonly string[];
  /** See {@link TraceHeader}. */
  readonly foreign?: boolean;
  /** Called with errors of the recording (default: a warning of the process). */
  readonly warn?: (message: string) => void;
  /** Texts that are removed for all sinks, in addition to text that resembles a secret. */
  readonly secrets?: readonly string[];
}

export class TraceOutputs {
  readonly #sinks: readonly TraceSink[];
  readonly #brokenSinks = new Set<TraceSink>();
  readonly #warn: (message: string) => void;
  readonly #redact: ((record: TraceRecord) => TraceLine) | undefined;

  constructor(options: TraceOutputsOptions) {
    const { sinks = [], level = 'standard', secrets, warn = (message) => process.emitWarning(message) } = options;
    this.#sinks = sinks;
    this.#warn = warn;
    // Without sinks, redaction and descriptions of charts are not needed.
    if (sinks.length === 0) return;
    this.#redact = recordRedactor({ full: level === 'full', secrets: secrets ?? secretsIn(process.env) });
    this.#write(headerOf(options));
  }

  write(record: TraceRecord): void {
    if (this.#redact !== undefined) this.#write(this.#redact(record));
  }

  close(): void {
    for (const sink of this.#sinks) sink.close();
  }

  #write(line: TraceLine): void {
    for (const sink of this.#sinks) {
      // A failed write loses one record; recording and other sinks continue.
      try {
        sink.write(line);
      } catch (error) {
        if (!this.#brokenSinks.has(sink)) this.#warn(`trace: ${messageOf(error)}`);
        this.#brokenSinks.add(sink);
      }
    }
  }
}

/** The same for all sinks, because it identifies the parts of one run. */
function headerOf(options: TraceOutputsOptions): TraceHeader {
  const {
    program,
    pid = process.pid,
    startedAt = new Date(),
    level = 'standard',
    machines = [],
    omits = [],
    foreign = false,
  } = options;
  return {
    kind: 'header',
    version: traceVersion,
    program,
    pid,
    startedAt: startedAt.toISOString(),
    level,
    machines: machinesOf(...machines).map(statechartOf),
    ...(foreign && { foreign }),
    ...(omits.length > 0 && { omits: [...new Set(omits)] }),
  };
}
