import { pino } from 'pino';
import { standardOutput } from './standard-streams.ts';

/** Levels as Istio's programs know them, least talkative first. */
export const logLevels = ['none', 'fatal', 'error', 'warn', 'info', 'debug'] as const;
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
  const destination = { write: (line: string) => write(options.asJson === true ? line : textLine(line)) };
  const make = (scope: string): Logger => {
    const log = pino(
      {
        level: pinoLevel[levelOf(scope)],
        base: { scope },
        timestamp: pino.stdTimeFunctions.isoTime,
        formatters: { level: (label) => ({ level: label }) },
        messageKey: 'msg',
      },
      destination,
    );
    return {
      debug: (message, fields) => log.debug(fields ?? {}, message),
      info: (message, fields) => log.info(fields ?? {}, message),
      warn: (message, fields) => log.warn(fields ?? {}, message),
      error: (message, fields) => log.error(fields ?? {}, message),
      scope: make,
      enabled: (level) => log.isLevelEnabled(level),
    };
  };
  return make('default');
}

function textLine(json: string): string {
  const { time, level, scope, msg, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const rest = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(
      ([key, value]) => `${key}=${typeof value === 'string' && !/[\s"=]/.test(value) ? value : JSON.stringify(value)}`,
    );
  return `${time}\t${level}\t${scope}\t${[msg, ...rest].join('  ')}\n`;
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
