/** The trace: newline-delimited JSON, one line per occurrence between actors. */
import { visibleText } from '../visible-text.ts';
import type { Statechart } from './statechart.ts';

/** Incremented when a reader of the old format could misread the new one. */
export const traceVersion = 4;

export interface TracedEvent {
  type: string;
  [field: string]: unknown;
}

/** First line of every file, including every file after a rotation. */
export interface TraceHeader {
  kind: 'header';
  version: number;
  /** `pilot-agent`, `pilot-discovery`, or the name of a test's world. */
  program: string;
  pid: number;
  /** Wall clock at `t` = 0, ISO 8601: the only wall-clock time in the file. */
  startedAt: string;
  /** `standard` truncates long texts and lists. A `full` trace can be replayed in any case. */
  level: TraceLevel;
  /** The trace can be drawn without the code that wrote it. */
  machines: readonly Statechart[];
  /**
   * Recorded by `chartpilot/record` in a foreign program. The name of an actor is its path from its root
   * (`shop/cart/pay`), and data is truncated if it is not plain or too large (`bounded-data.ts`).
   */
  foreign?: boolean;
  /** Several programs on one axis: names of actors begin with a label (`gateway:epoch-1`). */
  programs?: readonly MergedProgram[];
  /** Frequent routine events. Neither they nor the steps that they cause without a state change are recorded. */
  omits?: readonly string[];
  /**
   * Actors that live before the first record, in the order of their spawns: after a rotation, or when a ring has
   * dropped records.
   */
  actors?: readonly ActorSnapshot[];
}

export function isSameRun(header: TraceHeader, other: TraceHeader): boolean {
  return header.program === other.program && header.pid === other.pid && header.startedAt === other.startedAt;
}

export interface MergedProgram {
  readonly label: string;
  readonly program: string;
  readonly pid: number;
  readonly foreign?: boolean;
}

export type TraceLevel = 'standard' | 'full';

export interface ActorSnapshot {
  readonly actor: string;
  readonly parent?: string;
  readonly machine?: string;
  /** Empty for effects, and for a chart that has not started. */
  readonly state: string;
  readonly context?: unknown;
  readonly timers?: readonly RunningTimer[];
  /** `seq` and `t` of the actor's spawn. */
  readonly spawned: number;
  readonly spawnedAt: number;
}

export interface RunningTimer {
  readonly timer: string;
  /** Path of the state that the timer belongs to; the timer ends with that state. */
  readonly state: string;
  readonly ms: number;
  /** `t` of the timer's start. */
  readonly startedAt: number;
}

/** Fields of every other line: an increasing number, and monotonic milliseconds since the program started. */
export interface TraceStamp {
  seq: number;
  t: number;
}

/**
 * `path` is a JSON Pointer (RFC 6901) below the context; the empty one is the entire context. Without `value` the field is removed. Lists are
 * replaced as units.
 */
export interface ContextChange {
  path: string;
  value?: unknown;
}

interface Step {
  actor: string;
  on: string;
  /** `seq` of the event, timer or spawn that caused it. */
  cause?: number;
  /** Indexes of the transitions in the machine's definition; absent at the start. */
  taken?: number[];
  change?: ContextChange[];
}

export type TraceBody =
  /** `machine` is the id of the actor's definition; absent for effects. `restored` marks a root from a persisted snapshot. */
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
   * `from` is `outside` if no actor sent the event; `cause` is why a chart sent it. With `undelivered`, `to` had ended, so the event had no effect.
   */
  | { kind: 'event'; from: string; to: string; event: TracedEvent; undelivered?: true; cause?: number }
  /** A named delay of the actor started; it runs as long as `state` is active. */
  | { kind: 'timer-started'; actor: string; timer: string; state: string; ms: number; cause?: number }
  | { kind: 'timer'; actor: string; timer: string }
  /** The actor's active states changed; a state's name is its path, regions are joined with ` | `. */
  | ({ kind: 'transition'; from: string; to: string } & Step)
  /** The actor took a transition or changed its context, and its states stayed the same. */
  | ({ kind: 'step' } & Step)
  | { kind: 'effect'; actor: string; effect: string; params?: unknown; cause?: number }
  /**
   * `cause` is why the parent stopped the actor, or the record that the actor was handling when it failed. `during` is the record that the actor was
   * processing when its parent stopped it; the actor ended after that.
   */
  | {
      kind: 'stop';
      actor: string;
      status: 'done' | 'stopped' | 'error';
      output?: unknown;
      error?: string;
      cause?: number;
      during?: number;
    }
  /** No active state of the chart (`state`) declares a transition for the event, which is dropped. */
  | { kind: 'unexpected'; actor: string; on: string; state: string; cause?: number }
  /** A process that the actor runs wrote a line; `component` is the component of the process. */
  | { kind: 'log'; actor: string; level: 'debug' | 'info' | 'warn' | 'error'; component?: string; text: string };

export type TraceRecord = TraceBody & TraceStamp;
export type TraceLine = TraceHeader | TraceRecord;

/** An output of records, which must not throw and must not wait. Lines are redacted already. */
export interface TraceSink {
  write(line: TraceLine): void;
  /** After the return, all lines are written to the operating system. */
  flush(): void;
  close(): void;
}

export function formatTraceLine(line: TraceLine): string {
  return `${visibleText(JSON.stringify(line))}\n`;
}
