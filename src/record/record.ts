/**
 * `chartpilot/record`: records the actors of any XState 5 program as a trace, which `chartpilot visualize`, `check`,
 * `trace`, `replay` and `generate` read. Runs in Node and browsers, without dependencies.
 */
import type { AnyStateMachine, InspectionEvent } from 'xstate';
import { boundedData } from '../runtime/trace/bounded-data.ts';
import { createRecorder } from '../runtime/trace/recorder.ts';
import { secretsIn } from '../runtime/trace/secret-texts.ts';
import { formatTraceLine, type TraceLevel, type TraceSink } from '../runtime/trace/trace.ts';
import { TraceRing } from '../runtime/trace/trace-ring.ts';
import { visibleLine } from '../runtime/visible-text.ts';
import { TextSink, type WriteText } from './text-sink.ts';

export type { MarkKind, MarkRule, Timeline } from '../../machines/timeline.ts';
export type { WriteText } from './text-sink.ts';

export interface RecordOptions {
  readonly program: string;
  /** Machines of the program's root actors, including machines that these start by name. Other machines have no chart on the page. */
  readonly machines?: readonly AnyStateMachine[];
  /**
   * Receives the trace in complete lines, to append to a file or send. Its promise is awaited. If it throws, rejects or
   * is 4 MiB behind, records are lost and counted, and the program continues.
   */
  readonly write?: WriteText;
  /** Records kept in memory for {@link Recording.text} (default 20,000). */
  readonly keep?: number;
  /**
   * `standard` (default) truncates texts after 2,000 characters and lists after 16 items. `full` truncates only at the
   * limits of a record.
   */
  readonly level?: TraceLevel;
  /** Event types to omit, such as frequent routine events. */
  readonly omits?: readonly string[];
  /** Texts that must never be written, in addition to values that look like secrets or are in the environment. */
  readonly secrets?: readonly string[];
  /** Called once for each kind of problem (default `console.warn`). */
  readonly onProblem?: (message: string) => void;
}

export interface Recording {
  /** Pass to `createActor(machine, { inspect })` of every root actor. Give each an `id`, which becomes its name. */
  readonly inspect: (event: InspectionEvent) => void;
  /** The kept records in the file format, with the header. */
  readonly text: () => string;
  readonly lost: () => number;
  /** Ends the recording; resolves when all records have been written. */
  readonly close: () => Promise<void>;
}

/**
 * @example
 * ```ts
 * const recording = record({
 *   program: 'door lock',
 *   machines: [lockMachine],
 *   write: (text) => appendFile('lock.trace', text),
 * });
 * const lock = createActor(lockMachine, { id: 'lock', inspect: recording.inspect }).start();
 * ```
 */
export function record(options: RecordOptions): Recording {
  return recordTo([], options);
}

const defaultKeptRecords = 20_000;

export function recordTo(sinks: readonly TraceSink[], options: RecordOptions): Recording {
  const {
    write,
    keep = defaultKeptRecords,
    onProblem = (message) => console.warn(visibleLine(`chartpilot/record: ${message}`)),
  } = options;
  const { program, machines, level, omits, secrets = [] } = options;
  const ring = new TraceRing(keep);
  const text = write === undefined ? undefined : new TextSink(write, onProblem);
  const reportedProblems = new Set<string>();
  const { pid = 0, env = {} } =
    (globalThis as { process?: { pid?: number; env?: Record<string, string> } }).process ?? {};
  const recorder = createRecorder({
    program,
    pid,
    sinks: [ring, ...(text === undefined ? [] : [text]), ...sinks],
    secrets: [...secrets, ...secretsIn(env)],
    foreign: true,
    data: boundedData,
    warn: (message) => {
      if (reportedProblems.has(message)) return;
      reportedProblems.add(message);
      onProblem(message);
    },
    ...(machines !== undefined && { machines }),
    ...(level !== undefined && { level }),
    ...(omits !== undefined && { omits }),
  });
  let isClosed = false;
  return {
    inspect: (event) => {
      if (!isClosed) recorder.inspect(event);
    },
    text: () => {
      recorder.settle();
      return ring.lines().map(formatTraceLine).join('');
    },
    lost: () => text?.lost ?? 0,
    close: async () => {
      isClosed = true;
      recorder.close();
      await text?.waitUntilClosed();
    },
  };
}
