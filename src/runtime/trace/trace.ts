/**
 * The trace: newline-delimited JSON, one line per thing that happened between actors. The debugger, the sequence check
 * and the tests read it; `docs/trace-format.md` describes it for others.
 */
import { visibleText } from '../visible-text.ts';
import type { Statechart } from './statechart.ts';

/** Raised when a reader of the old format could misread the new one. */
export const traceVersion = 4;

/** An event as it passed: its type, and its plain-data payload. */
export interface TracedEvent {
  type: string;
  [field: string]: unknown;
}

/** First line of every file, and of every file that follows a rotation. */
export interface TraceHeader {
  kind: 'header';
  version: number;
  /** `pilot-agent`, `pilot-discovery`, or the name of a test's world. */
  program: string;
  pid: number;
  /** Wall clock at `t` = 0, ISO 8601: the only wall-clock time in the file. */
  startedAt: string;
  /** `standard`: long texts and lists are cut. `full`: they are not, and the trace can be replayed whatever is in it. */
  level: TraceLevel;
  /** Definitions of the machines that run, so that the trace can be drawn without the code that wrote it. */
  machines: readonly Statechart[];
  /**
   * Recorded by `chartpilot/record` in a program of anybody's: an actor's name is its path from its root (`shop/cart/pay`), and data
   * is cut where it is not plain or too much (`bounded-data.ts`).
   */
  foreign?: boolean;
  /** Of several programs on one axis: names of actors begin with a label (`gateway:epoch-1`). */
  programs?: readonly MergedProgram[];
  /** Types of events that are left out, and what they change without changing a state: routine that comes in thousands. */
  omits?: readonly string[];
  /** Who lived before the first record, in the order of their spawns: after a rotation, or when a ring has run over. */
  actors?: readonly ActorSnapshot[];
}

/** Whether two traces, or parts of one, are of one run of a program. */
export function isSameRun(one: TraceHeader, other: TraceHeader): boolean {
  return one.program === other.program && one.pid === other.pid && one.startedAt === other.startedAt;
}

/** A program that is in a trace with others (`chartpilot trace --merge`). */
export interface MergedProgram {
  readonly label: string;
  readonly program: string;
  readonly pid: number;
  readonly foreign?: boolean;
}

export type TraceLevel = 'standard' | 'full';

/** What is known of a living actor. */
export interface ActorSnapshot {
  readonly actor: string;
  readonly parent?: string;
  /** Its definition's id; absent for effects. */
  readonly machine?: string;
  /** Active states; empty for effects, and for a chart that has not begun. */
  readonly state: string;
  readonly context?: unknown;
  /** Running timers. */
  readonly timers?: readonly RunningTimer[];
  /** `seq` and `t` of its spawn. */
  readonly spawned: number;
  readonly spawnedAt: number;
}

export interface RunningTimer {
  readonly timer: string;
  /** Path of the state that it belongs to: it ends with it. */
  readonly state: string;
  readonly ms: number;
  /** `t` when it was started. */
  readonly startedAt: number;
}

/** What every other line has: a number that only grows, and monotonic milliseconds since the program started. */
export interface TraceStamp {
  seq: number;
  t: number;
}

/**
 * One change of a context. `path` is a JSON Pointer (RFC 6901) below the context; the empty one is the whole of it. Without
 * `value` the field is gone. Lists are replaced as a whole.
 */
export interface ContextChange {
  path: string;
  value?: unknown;
}

/** What a chart did because of one event. */
interface Step {
  actor: string;
  /** The event's type, as XState calls it. */
  on: string;
  /** `seq` of the event, timer or spawn that it is the answer to. */
  cause?: number;
  /** Numbers of the transitions in the machine's definition; absent at the start. */
  taken?: number[];
  change?: ContextChange[];
}

export type TraceBody =
  /** An actor was created. `machine` is its definition's id; absent for effects. `restored`: a root, from a persisted snapshot. */
  | {
      kind: 'spawn';
      actor: string;
      parent?: string;
      machine?: string;
      input?: unknown;
      restored?: true;
      cause?: number;
    }
  /**
   * An event was delivered. `from` is `outside` when no actor sent it; `cause`: what made a chart send it. `undelivered`: it was sent, and
   * `to` had ended, so that nothing happened.
   */
  | { kind: 'event'; from: string; to: string; event: TracedEvent; undelivered?: true; cause?: number }
  /** A named delay of the actor runs now, as long as `state` is active. */
  | { kind: 'timer-started'; actor: string; timer: string; state: string; ms: number; cause?: number }
  /** A named delay of the actor elapsed. */
  | { kind: 'timer'; actor: string; timer: string }
  /** The actor's active states changed; a state's name is its path, regions are joined with ` | `. */
  | ({ kind: 'transition'; from: string; to: string } & Step)
  /** It took a transition, or its context changed, and its states stayed. */
  | ({ kind: 'step' } & Step)
  /** The actor performed a named action that touches the world. */
  | { kind: 'effect'; actor: string; effect: string; params?: unknown; cause?: number }
  /** The actor ended. `cause`: what its parent stopped it for, or what it was handling when it failed. `during`: what it was at then; it ended when done with that. */
  | {
      kind: 'stop';
      actor: string;
      status: 'done' | 'stopped' | 'error';
      output?: unknown;
      error?: string;
      cause?: number;
      during?: number;
    }
  /** A diagnostic: an event came that the chart has no word for in `state`. It is lost, and the actor goes on as it was. */
  | { kind: 'unexpected'; actor: string; on: string; state: string; cause?: number }
  /** A process that the actor runs wrote a line; `component`: the part of it that speaks. */
  | { kind: 'log'; actor: string; level: 'debug' | 'info' | 'warn' | 'error'; component?: string; text: string };

export type TraceRecord = TraceBody & TraceStamp;
export type TraceLine = TraceHeader | TraceRecord;

/** Somewhere records go: a file, a ring in memory. Must not throw and must not wait. Lines are redacted already. */
export interface TraceSink {
  write(line: TraceLine): void;
  /** Everything written so far is on its way out when this returns. */
  flush(): void;
  close(): void;
}

/** One line of a trace file, with its newline. */
export function formatTraceLine(line: TraceLine): string {
  return `${visibleText(JSON.stringify(line))}\n`;
}
