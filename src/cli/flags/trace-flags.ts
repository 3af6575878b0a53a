import type { Command } from 'commander';
import type { AnyStateMachine } from 'xstate';
import { mustBe, unknownValue } from '../../model/fields/violation.ts';
import { messageOf } from '../../runtime/errors.ts';
import { chooseRunDir } from '../../runtime/files/run-dir.ts';
import { optionError } from '../../runtime/option-errors.ts';
import type { SinkLines, SinkListener } from '../../runtime/output/line-sink.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { DebuggerAccess, type DebuggerMode, debuggerModes } from '../../runtime/trace/debugger-access.ts';
import { createRecorder, type Recorder } from '../../runtime/trace/recorder.ts';
import type { TraceLevel, TraceSink } from '../../runtime/trace/trace.ts';
import { TraceEndpoint } from '../../runtime/trace/trace-endpoint.ts';
import { type TraceFile, traceFile } from '../../runtime/trace/trace-file.ts';
import { TraceRing } from '../../runtime/trace/trace-ring.ts';

export interface RecordingFlags {
  readonly trace?: string;
  readonly traceLevel?: string;
  readonly debugger?: string;
}

export function addRecordingFlags(command: Command): Command {
  command.optionsGroup('Observability:');
  return command
    .option('--trace <file>', 'Record a trace of the state machines')
    .option('--traceLevel <level>', 'Detail of the trace: standard (default) or full')
    .option('--debugger <mode>', 'Access of local users to the trace: on (with a token, default), open or off');
}

export interface ProgramRecording {
  readonly level: TraceLevel;
  readonly recorder: Recorder;
  readonly access: DebuggerAccess;
  /** `undefined` with `--debugger off`. */
  readonly trace?: TraceEndpoint;
  countUnwrittenLines(): SinkLines;
  /** Ends the recording; readers receive the remaining records. */
  close(): Promise<void>;
}

/** Enough for hours of normal operation, or minutes of failures. */
const defaultKeptRecords = 20_000;
const levels = ['standard', 'full'] as const;

/** @throws ChartpilotError FLAG_INVALID */
export function openRecording(options: {
  readonly program: string;
  readonly machines: readonly AnyStateMachine[];
  /** Event types that are recorded only at level `full`. */
  readonly routine?: readonly string[];
  readonly flags: RecordingFlags;
  readonly runDir?: string | undefined;
  readonly log: Logger;
}): ProgramRecording {
  const { program, machines, flags, log } = options;
  const level = parseChoice(levels, '--traceLevel', flags.traceLevel ?? 'standard');
  const mode: DebuggerMode = parseChoice(debuggerModes, '--debugger', flags.debugger ?? 'on');
  const file = flags.trace ? openTraceFile(flags.trace, log) : undefined;
  const sinks: TraceSink[] = file === undefined ? [] : [file];
  const countUnwrittenLines = (): SinkLines => file?.lines ?? { lost: 0, waiting: 0 };
  const settings = { program, machines, level, omits: level === 'full' ? [] : (options.routine ?? []) };
  const debuggerLog = log.scope('debugger');
  const access = new DebuggerAccess({ runDir: chooseRunDir(options.runDir), log: debuggerLog });
  const ring = mode === 'off' ? undefined : new TraceRing(defaultKeptRecords);
  const recorder = createRecorder({ ...settings, sinks: ring === undefined ? sinks : [...sinks, ring] });
  const trace =
    ring === undefined || mode === 'off' ? undefined : new TraceEndpoint({ ring, mode, access, log: debuggerLog });
  return {
    level,
    recorder,
    access,
    ...(trace && { trace }),
    countUnwrittenLines,
    async close() {
      access.removeTokenFiles();
      await trace?.end();
      recorder.close();
    },
  };
}

function openTraceFile(path: string, log: Logger): TraceFile {
  try {
    return traceFile(path, { listener: traceListener(path, log) });
  } catch (error) {
    throw optionError('--trace', mustBe('a file that can be written', path, { hint: messageOf(error) }), {
      cause: error,
    });
  }
}

/** Logs write failures of the trace, because a missing trace is noticed only when it is needed. */
export function traceListener(file: string, log: Logger): SinkListener {
  return {
    failed: (error) => log.warn('trace.unwritable', { file, reason: messageOf(error) }),
    recovered: (loss) =>
      log.warn('trace.resumed', {
        file,
        lost: loss?.lines ?? 0,
        ...(loss !== undefined && { from: loss.from.toISOString(), to: loss.to.toISOString(), reason: loss.why }),
      }),
  };
}

function parseChoice<Value extends string>(values: readonly Value[], flag: string, text: string): Value {
  const value = values.find((candidate) => candidate === text);
  if (value !== undefined) return value;
  throw optionError(flag, unknownValue(values, text));
}
