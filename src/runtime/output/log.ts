import { pino } from 'pino';
import { configure } from 'safe-stable-stringify';
import { messageOf } from '../errors.ts';
import { visibleLine, visibleText } from '../visible-text.ts';
import { standardOutput } from './standard-streams.ts';

/** Levels as Istio's programs know them, least talkative first. */
const logLevels = ['none', 'fatal', 'error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof logLevels)[number];

/** A log of one part of a program. `fields` are flat facts; never secrets. */
export interface Logger {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
  /** The same log for another part of the program; the part's name is in every line. */
  scope(name: string): Logger;
  /** Whether lines of this level are written at all. */
  enabled(level: 'debug' | 'info' | 'warn' | 'error'): boolean;
}

export interface LogOptions {
  /** `level` for all scopes, or `scope:level,…` with `default` for the others (`--log_output_level`). */
  outputLevel?: string;
  /** JSON lines instead of text (`--log_as_json`). */
  asJson?: boolean;
  /** Scopes whose lines say which line of the program wrote them, with commas between; `all` (`--log_caller`). */
  callers?: string;
  /** As the level: lines of it and worse have the stack (`--log_stacktrace_level`). Default: none. */
  stackTraceLevel?: string;
  /** Where lines go; standard output unless a test says otherwise. */
  write?: (line: string) => void;
}

/** Parses `--log_output_level` into a level a scope. Throws a plain Error that names the bad item. */
export function parseLogLevels(spec: string): Map<string, LogLevel> {
  const levels = new Map<string, LogLevel>();
  for (const item of spec.split(',').filter(Boolean)) {
    const [scope, level] = item.includes(':') ? item.split(':', 2) : ['default', item];
    if (!logLevels.includes(level as LogLevel)) {
      throw new Error(
        `log level ${JSON.stringify(item)}: expected [scope:]level with level one of ${logLevels.join(', ')}`,
      );
    }
    levels.set(scope!, level as LogLevel);
  }
  return levels;
}

const pinoLevel = {
  none: 'silent',
  fatal: 'fatal',
  error: 'error',
  warn: 'warn',
  info: 'info',
  debug: 'debug',
} as const;

/** Makes the root log of a program. Text lines are `time <tab> level <tab> scope <tab> message  key=value …`. */
export function createLogger(options: LogOptions = {}): Logger {
  const levels = parseLogLevels(options.outputLevel ?? 'default:info');
  const write = options.write ?? ((line: string) => standardOutput.write(line));
  const levelOf = (scope: string): LogLevel =>
    levels.get('all') ?? levels.get(scope) ?? levels.get('default') ?? 'info';
  const lines = options.asJson === true ? jsonLines : textLines;
  const traced = stackTraces(options);
  const make = (scope: string): Logger => {
    const level = levelOf(scope);
    const say = traced(scope, lines(scope, level, write));
    const enabled = (one: Said): boolean => logLevels.indexOf(one) <= logLevels.indexOf(level);
    return {
      debug: say('debug'),
      info: say('info'),
      warn: say('warn'),
      error: say('error'),
      scope: make,
      enabled,
    };
  };
  return make('default');
}

type Said = 'debug' | 'info' | 'warn' | 'error';
/** How the lines of a scope are made, for each level. */
type Lines = (
  scope: string,
  level: LogLevel,
  write: (line: string) => void,
) => (level: Said) => (message: string, fields?: object) => void;

const jsonLines: Lines = (scope, level, write) => {
  const log = pino(
    {
      level: pinoLevel[level],
      base: { scope },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      messageKey: 'msg',
    },
    { write: (line: string) => write(visibleText(line)) },
  );
  return (said) => (message, fields) => log[said](fields ?? {}, message);
};

/** What a line says of the program that wrote it, where somebody wants to know: it costs a stack each. */
function stackTraces({ callers = '', stackTraceLevel = '' }: LogOptions) {
  const named = new Set(callers.split(',').map((scope) => scope.trim()));
  const levels = parseLogLevels(stackTraceLevel);
  return (scope: string, say: ReturnType<Lines>): ReturnType<Lines> => {
    const saysCaller = named.has('all') || named.has('*') || named.has(scope);
    const worst = logLevels.indexOf(levels.get('all') ?? levels.get(scope) ?? levels.get('default') ?? 'none');
    if (!saysCaller && worst === 0) return say;
    return (said) => {
      const write = say(said);
      const saysStack = logLevels.indexOf(said) <= worst;
      const line = (message: string, fields: object = {}): void => {
        const place = { stack: '' };
        Error.captureStackTrace(place, line);
        // Without the message.
        const frames = place.stack.split('\n').slice(1);
        write(message, {
          ...fields,
          ...(saysCaller && { caller: placeOf(frames[0]) }),
          ...(saysStack && { stack: frames.map((frame) => frame.trim()).join(' ') }),
        });
      };
      return line;
    };
  };
}

/** File and line, without the folders that this installation happens to lie in. */
function placeOf(frame = ''): string {
  return /([^/\\(\s]+:\d+):\d+\)?$/.exec(frame)?.[1] ?? 'unknown';
}

/** Without pino, whose lines would have to be read again; what a value may cost is bounded as it bounds it. */
const textLines: Lines = (scope, level, write) => (said) => {
  if (logLevels.indexOf(said) > logLevels.indexOf(level)) return () => {};
  return (message, fields = {}) => {
    const words = [message, ...Object.entries(fields).flatMap(textOfField)].join('  ');
    write(`${new Date().toISOString()}\t${said}\t${visibleLine(scope)}\t${visibleLine(words)}\n`);
  };
};

function textOfField([key, value]: [string, unknown]): string[] {
  if (typeof value === 'string') return [`${key}=${isBare(value) ? value : JSON.stringify(value)}`];
  const json = jsonOf(value);
  if (json === undefined) return [];
  // What becomes a string, a date, is written as one.
  return json.startsWith('"') ? textOfField([key, JSON.parse(json)]) : [`${key}=${json}`];
}

/** A value that holds a backslash is quoted, too: there it is doubled, and no value looks like the escape of another. */
function isBare(value: string): boolean {
  return !/[\s"=\\]/.test(value) && visibleText(value) === value;
}

const stringify = configure({ maximumDepth: 5, maximumBreadth: 100 });

/** Undefined for what is nothing in JSON. A log line is written whatever is in it. */
function jsonOf(value: unknown): string | undefined {
  try {
    return stringify(value);
  } catch (error) {
    return JSON.stringify(`cannot be written: ${messageOf(error)}`);
  }
}

/** A log that says nothing, for tests and for parts that are used as a library. */
export const silentLogger: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  scope: () => silentLogger,
  enabled: () => false,
};
