/** One line that a program logs, as data: the level, the message, what it means and what to do. */

/** Levels of events. */
export type EventLevel = 'debug' | 'info' | 'warn' | 'error';

export interface LogEvent {
  /** `relayed`: a line of another program, at its level and with its text. */
  readonly level: EventLevel | 'relayed';
  /** Lower case; what happened. Facts are fields. A field in braces, `{actor}`, is part of the message and not repeated in a text line. */
  readonly message: string;
  /** What has happened, for docs/log-events.md. */
  readonly meaning: string;
  /** What an operator does about it. */
  readonly action: string;
}

/** Events of one area by ID. An event that a line repeats from the trace has the name of its trace event. */
export type LogEventTable = Readonly<Record<string, LogEvent>>;

/** For events that need nothing. */
export const noAction = 'None.';
