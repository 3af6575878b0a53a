export type EventLevel = 'debug' | 'info' | 'warn' | 'error';

export interface LogEvent {
  /** `relayed` is a line of another program, at its level and with its text. */
  readonly level: EventLevel | 'relayed';
  /**
   * Lower case, without fields. A field in braces, `{actor}`, is part of the message and not repeated in a text line.
   */
  readonly message: string;
  readonly meaning: string;
  readonly action: string;
}

/** A log event that repeats an event of the trace has the same name. */
export type LogEventTable = Readonly<Record<string, LogEvent>>;

export const noAction = 'None.';
