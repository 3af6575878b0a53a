/** A log whose lines are data for tests. */
import type { LogEventId } from '../../src/runtime/log-events/log-events.ts';
import { createLogger, type Logger } from '../../src/runtime/output/log.ts';

/** One line: its event, level, scope unless that is `default`, and fields. */
export interface LoggedEvent {
  readonly event: LogEventId;
  readonly level: string;
  readonly scope?: string;
  readonly [field: string]: unknown;
}

/** @param outputLevel as `--log_output_level` */
export function recordingLog(outputLevel = 'default:debug'): { readonly log: Logger; readonly lines: LoggedEvent[] } {
  const lines: LoggedEvent[] = [];
  const log = createLogger({ outputLevel, asJson: true, write: (line) => lines.push(loggedEvent(line)) });
  return { log, lines };
}

export function loggedEvent(line: string): LoggedEvent {
  const { time: _time, msg: _msg, scope, ...rest } = JSON.parse(line) as Record<string, unknown>;
  return { ...(rest as { event: LogEventId; level: string }), ...(scope !== 'default' && { scope: String(scope) }) };
}
