/** Where records leave for: files and viewers, none of which may end the program or see a secret. */
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
  /** The machines that run, for the header; those that they start by name come along. */
  readonly machines?: readonly AnyStateMachine[];
  /** `standard` unless said otherwise. */
  readonly level?: TraceLevel;
  /** Types of events that are not recorded, nor the steps that they cause where no state changes. */
  readonly omits?: readonly string[];
  /** See {@link TraceHeader}. */
  readonly foreign?: boolean;
  /** Told of what goes wrong with the recording; a warning of the process unless given. */
  readonly warn?: (message: string) => void;
  /** Texts that no sink is given; what looks like a secret is left out anyway. */
  readonly secrets?: readonly string[];
}

/** Writes the header, then what it is given. */
export class TraceOutputs {
  readonly #sinks: readonly TraceSink[];
  /** Sinks whose failure was told. */
  readonly #broken = new Set<TraceSink>();
  readonly #warn: (message: string) => void;
  readonly #redact: ((record: TraceRecord) => TraceLine) | undefined;

  constructor(options: TraceOutputsOptions) {
    const { sinks = [], level = 'standard', secrets, warn = (message) => process.emitWarning(message) } = options;
    this.#sinks = sinks;
    this.#warn = warn;
    // Nobody reads: nothing is made safe, and no chart is described.
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
      // A trace that breaks is a record less: what is recorded goes on, and so do the other sinks.
      try {
        sink.write(line);
      } catch (error) {
        if (!this.#broken.has(sink)) this.#warn(`trace: ${messageOf(error)}`);
        this.#broken.add(sink);
      }
    }
  }
}

/** The same for all sinks: by it, the parts of one run are known. */
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
