import { pino } from 'pino';
import { configure } from 'safe-stable-stringify';
import { messageOf } from '../errors.ts';
import {
  type EventLevel,
  type EventOfLevel,
  fieldsOutsideMessage,
  type LogEntry,
  type LogEventId,
  levelOfEvent,
  messageText,
} from '../log-events/log-events.ts';
import { visibleLine, visibleText } from '../visible-text.ts';
import { type InitialLevels, includesLevel, LogLevels, type ScopeSettings } from './log-levels.ts';
import { standardOutput } from './standard-streams.ts';

/**
 * Each line is an event of the tables in `src/runtime/log-events`, which contain its level and its message; `fields` are flat facts, never secrets.
 */
export interface Logger {
  debug(event: EventOfLevel<'debug'>, fields?: object): void;
  info(event: EventOfLevel<'info'>, fields?: object): void;
  warn(event: EventOfLevel<'warn'>, fields?: object): void;
  error(event: EventOfLevel<'error'>, fields?: object): void;
  write(entry: LogEntry): void;
  relay(event: EventOfLevel<'relayed'>, level: EventLevel, text: string, fields?: object): void;
  scope(name: string): Logger;
  /**
   * A logger to which the level of the proxy adds lines.
   * @param name `NAME.NAMESPACE`
   */
  ofProxy(name: string): Logger;
  readonly levels: LogLevels;
  enabled(level: EventLevel): boolean;
}

export interface LogOptions extends InitialLevels {
  /** JSON lines instead of text (`--log_as_json`). */
  asJson?: boolean;
  write?: (line: string) => void;
}

type WriteLine = (level: EventLevel, event: LogEventId, message: string, fields: object) => void;
type LineWriterFactory = (scope: string, write: (line: string) => void) => WriteLine;

/** Text lines are `time <tab> level <tab> scope <tab> message  key=value …`. */
export function createLogger(options: LogOptions = {}): Logger {
  const levels = new LogLevels(options);
  const write = options.write ?? ((line: string) => standardOutput.write(line));
  const lines = options.asJson === true ? jsonLines : textLines;
  const loggerOf = (scope: string, writeLine = lines(scope, write), proxy?: string): Logger => {
    const settings = levels.of(scope);
    const isEnabled = (eventLevel: EventLevel): boolean =>
      includesLevel(settings.outputLevel, eventLevel) ||
      (proxy !== undefined && levels.includesProxy(scope, eventLevel, proxy));
    const emit = (eventLevel: EventLevel, event: LogEventId, fields: object, from: Caller): void =>
      writeLine(eventLevel, event, messageText(event, fields), withOrigin(settings, eventLevel, fields, from));
    const logAtLevel = <Level extends EventLevel>(
      eventLevel: Level,
    ): ((event: EventOfLevel<Level>, fields?: object) => void) =>
      function line(event, fields = {}) {
        if (isEnabled(eventLevel)) emit(eventLevel, event, fields, line);
      };
    return {
      debug: logAtLevel('debug'),
      info: logAtLevel('info'),
      warn: logAtLevel('warn'),
      error: logAtLevel('error'),
      write: function entry({ event, ...fields }) {
        const eventLevel = levelOfEvent(event);
        if (isEnabled(eventLevel)) emit(eventLevel, event, fields, entry);
      },
      relay: function relayed(event, eventLevel, text, fields = {}) {
        if (isEnabled(eventLevel))
          writeLine(eventLevel, event, text, withOrigin(settings, eventLevel, fields, relayed));
      },
      scope: (name) => loggerOf(name),
      ofProxy: (name) => loggerOf(scope, writeLine, name),
      levels,
      enabled: isEnabled,
    };
  };
  return loggerOf('default');
}

const jsonLines: LineWriterFactory = (scope, write) => {
  const log = pino(
    {
      level: 'debug',
      base: { scope },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      messageKey: 'msg',
    },
    { write: (line: string) => write(visibleText(line)) },
  );
  return (eventLevel, event, message, fields) =>
    log[eventLevel]({ event, ...fields, ...('event' in fields && { event }) }, message);
};

type Caller = (...args: never[]) => void;

/** The source line costs a stack for each log line, so it is added only if the settings require it. */
function withOrigin(
  { logCallers, stackTraceLevel }: Readonly<ScopeSettings>,
  level: EventLevel,
  fields: object,
  from: Caller,
): object {
  const hasStack = includesLevel(stackTraceLevel, level);
  if (!logCallers && !hasStack) return fields;
  const stackHolder = { stack: '' };
  Error.captureStackTrace(stackHolder, from);
  const frames = stackHolder.stack.split('\n').slice(1);
  return {
    ...fields,
    ...(logCallers && { caller: callerLocationOf(frames[0]) }),
    ...(hasStack && { stack: frames.map((frame) => frame.trim()).join(' ') }),
  };
}

function callerLocationOf(frame = ''): string {
  return /([^/\\(\s]+:\d+):\d+\)?$/.exec(frame)?.[1] ?? 'unknown';
}

/** Does not use pino, whose lines would have to be parsed again; values are limited as in pino. */
const textLines: LineWriterFactory = (scope, write) => (eventLevel, event, message, fields) => {
  const lineText = [message, ...Object.entries(fieldsOutsideMessage(event, fields)).flatMap(textOfField)].join('  ');
  write(`${new Date().toISOString()}\t${eventLevel}\t${visibleLine(scope)}\t${visibleLine(lineText)}\n`);
};

/** An entry as `message  key=value …`, for a program that prints it instead of logging it. */
export function entryText({ event, ...fields }: LogEntry): string {
  return [messageText(event, fields), ...Object.entries(fieldsOutsideMessage(event, fields)).flatMap(textOfField)].join(
    '  ',
  );
}

function textOfField([key, value]: [string, unknown]): string[] {
  if (typeof value === 'string') return [`${key}=${needsNoQuotes(value) ? value : JSON.stringify(value)}`];
  const json = jsonOf(value);
  if (json === undefined) return [];
  // A value that JSON converts to a string, such as a date, is written as a string.
  return json.startsWith('"') ? textOfField([key, JSON.parse(json)]) : [`${key}=${json}`];
}

/**
 * A value that contains a backslash is quoted, and the backslash doubled, so that no value resembles the escape of
 * another.
 */
function needsNoQuotes(value: string): boolean {
  return !/[\s"=\\]/.test(value) && visibleText(value) === value;
}

const stringify = configure({ maximumDepth: 5, maximumBreadth: 100 });

/** `undefined` for values that JSON omits. Never throws. */
function jsonOf(value: unknown): string | undefined {
  try {
    return stringify(value);
  } catch (error) {
    return JSON.stringify(`cannot be written: ${messageOf(error)}`);
  }
}

/** For tests and for components that are used as a library. */
export const silentLogger: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  write: () => {},
  relay: () => {},
  scope: () => silentLogger,
  ofProxy: () => silentLogger,
  levels: new LogLevels({ outputLevel: 'none' }),
  enabled: () => false,
};
