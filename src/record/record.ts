/**
 * `chartpilot/record`: writes what the actors of any XState 5 program do as a trace, which `chartpilot visualize`, `check`, `trace`,
 * `replay` and `generate` read. In Node and in a browser, without a dependency.
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
  /** What the program is called, in the page and in what commands print. */
  readonly program: string;
  /** The machines of its root actors; those that they start by name come along. What is not here has no chart in the page. */
  readonly machines?: readonly AnyStateMachine[];
  /**
   * Takes the trace as it grows, whole lines at a time: appends them to a file, posts them somewhere. What it returns is waited for.
   * One that throws, rejects or is 4 MiB behind costs records, which are counted, and never the program.
   */
  readonly write?: WriteText;
  /** Records that are kept in memory for {@link Recording.text}: 20,000 unless given. */
  readonly keep?: number;
  /** `standard`, the default: texts are cut after 2,000 characters, lists after 16 items. `full`: not, up to the bounds of a record. */
  readonly level?: TraceLevel;
  /** Types of events that are left out: routine that comes in thousands. */
  readonly omits?: readonly string[];
  /** Texts that must not be written wherever they turn up, beside what looks like a secret and what the environment holds. */
  readonly secrets?: readonly string[];
  /** Told once of each thing that goes wrong with the recording: `console.warn` unless given. */
  readonly onProblem?: (message: string) => void;
}

export interface Recording {
  /** Goes into `createActor(machine, { inspect })` of every root actor of the program. Give each an `id`: it is its name. */
  readonly inspect: (event: InspectionEvent) => void;
  /** The trace as far as it is kept, as a file would have it: the header and the last records. */
  readonly text: () => string;
  /** Records that `write` did not take. */
  readonly lost: () => number;
  /** Resolves when all has been written. What happens after it is not recorded. */
  readonly close: () => Promise<void>;
}

/**
 * Begins to record.
 *
 * @example
 * const recording = record({ program: 'door lock', machines: [lockMachine], write: (text) => appendFile('lock.trace', text) });
 * const lock = createActor(lockMachine, { id: 'lock', inspect: recording.inspect }).start();
 */
export function record(options: RecordOptions): Recording {
  return recordTo([], options);
}

const keptByDefault = 20_000;

/** As {@link record}, with places of one's own that records go to. */
export function recordTo(sinks: readonly TraceSink[], options: RecordOptions): Recording {
  const {
    write,
    keep = keptByDefault,
    onProblem = (message) => console.warn(visibleLine(`chartpilot/record: ${message}`)),
  } = options;
  const { program, machines, level, omits, secrets = [] } = options;
  const ring = new TraceRing(keep);
  const text = write === undefined ? undefined : new TextSink(write, onProblem);
  const told = new Set<string>();
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
      if (told.has(message)) return;
      told.add(message);
      onProblem(message);
    },
    ...(machines !== undefined && { machines }),
    ...(level !== undefined && { level }),
    ...(omits !== undefined && { omits }),
  });
  let closed = false;
  return {
    inspect: (event) => {
      if (!closed) recorder.inspect(event);
    },
    text: () => {
      recorder.settle();
      return ring.lines().map(formatTraceLine).join('');
    },
    lost: () => text?.lost ?? 0,
    close: async () => {
      closed = true;
      recorder.close();
      await text?.closed();
    },
  };
}
