import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { Command, Option } from 'commander';
import { malformedValue, mustBe } from '../../model/fields/violation.ts';
import { type ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { optionError } from '../../runtime/option-errors.ts';
import type { LineSink, SinkLines } from '../../runtime/output/line-sink.ts';
import { createLogger, type Logger } from '../../runtime/output/log.ts';
import { parseLogLevels } from '../../runtime/output/log-levels.ts';
import { describeScopes, unknownScopes } from '../../runtime/output/log-scopes.ts';
import { pathErrorIn } from '../../runtime/output/outlet.ts';
import { openAppendingSink, standardError, standardOutput } from '../../runtime/output/standard-streams.ts';

export interface LogFlags {
  readonly log_output_level: string;
  readonly log_as_json?: boolean;
  readonly log_target: string;
  readonly log_caller?: string;
  readonly log_stacktrace_level?: string;
}

export function addLogFlags(command: Command): Command {
  command.optionsGroup('Observability:');
  return command
    .addOption(new Option('--log_output_level <scope:level,…>', 'Log level of each scope').default('default:info'))
    .addOption(new Option('--log_as_json', 'Write one JSON object per line'))
    .addOption(new Option('--log_target <where>', 'Destination: stdout, stderr or a file').default('stdout'))
    .addOption(new Option('--log_caller <scope,…>', 'Scopes whose lines contain their caller').hideHelp())
    .addOption(new Option('--log_stacktrace_level <scope:level,…>', 'Levels that include a stack trace').hideHelp());
}

/** Adds hidden log flags to a command without a log, because every command accepts and checks them. */
export function acceptLogFlags(command: Command): void {
  const definedFlags = new Set(command.options.map(({ long }) => long));
  for (const option of addLogFlags(new Command()).options)
    if (!definedFlags.has(option.long)) command.addOption(option.hideHelp());
  // `proxy` checks these flags when it opens its log.
  if (command.name() !== 'proxy') command.hook('preAction', () => checkLogFlags(command.opts<LogFlags>()));
}

/**
 * Reports unknown scopes on standard error.
 *
 * @throws ChartpilotError FLAG_INVALID
 */
function checkLogFlags(flags: LogFlags): void {
  const { log_target: target } = flags;
  // Checks only the directory: an unused log creates no file.
  if (
    !standardStreams.has(target) &&
    statSync(dirname(resolve(target)), { throwIfNoEntry: false })?.isDirectory() !== true
  ) {
    throw unwritableLog(target, 'its directory does not exist');
  }
  const log = loggerTo(standardError, { ...flags, log_as_json: false }, '');
  reportUnknownScopes(flags, log);
}

const standardStreams: ReadonlySet<string> = new Set(['stdout', 'stderr']);

export interface ProgramLog {
  readonly log: Logger;
  countUnwrittenLines(): SinkLines;
}

/**
 * @param defaultScopeLevels levels for scopes that the flags do not set, such as `envoy:debug`
 * @throws ChartpilotError FLAG_INVALID
 */
export function loggerFromFlags(flags: LogFlags, defaultScopeLevels = ''): ProgramLog {
  const sink = sinkOf(flags.log_target);
  const log = loggerTo(sink, flags, defaultScopeLevels);
  reportUnknownScopes(flags, log);
  reportLostLines(sink, 'log', log);
  // Envoy's access logs are written to standard output, independently of the log.
  if (sink !== standardOutput) reportLostLines(standardOutput, 'standard output', log);
  return { log, countUnwrittenLines: () => sumOf(sink === standardOutput ? [sink] : [sink, standardOutput]) };
}

function reportUnknownScopes(
  { log_output_level, log_stacktrace_level = '', log_caller = '' }: LogFlags,
  log: Logger,
): void {
  const callers = log_caller.split(',').map((scope) => scope.trim());
  const scopesByFlag = {
    '--log_output_level': parseLogLevels(log_output_level).keys(),
    '--log_stacktrace_level': parseLogLevels(log_stacktrace_level).keys(),
    '--log_caller': callers.filter((scope) => scope !== '' && scope !== '*'),
  };
  for (const [flag, scopes] of Object.entries(scopesByFlag)) {
    const unknownNames = unknownScopes(scopes);
    if (unknownNames.length === 0) continue;
    log.warn('log.scopeUnknown', { flag, scopes: unknownNames.join(', '), known: describeScopes() });
  }
}

function sumOf(sinks: readonly LineSink[]): SinkLines {
  const linesOfSinks = sinks.map((sink) => sink.lines);
  const sum = (key: keyof SinkLines): number => linesOfSinks.reduce((total, sinkLines) => total + sinkLines[key], 0);
  return { lost: sum('lost'), waiting: sum('waiting') };
}

export function reportLostLines(sink: LineSink, output: string, log: Logger): void {
  sink.listen({
    recovered: (loss) => {
      if (loss === undefined) return;
      const { lines, from, to, why } = loss;
      log.warn('log.linesLost', { output, lines, from: from.toISOString(), to: to.toISOString(), reason: why });
    },
  });
}

/** Replaces Node's own output of warnings, which would block until standard error accepts them. */
export function logWarnings(log: Logger): void {
  process.removeAllListeners('warning');
  process.on('warning', ({ message, name }) => {
    if (!isMeasureMemoryWarning(message)) log.warn('node.warning', { name, reason: message });
  });
}

/** An operator cannot act on this warning: the program uses this experimental function deliberately (memory-release.effects.ts). */
const isMeasureMemoryWarning = (message: string): boolean => message.startsWith('vm.measureMemory is an experimental');

function loggerTo(sink: LineSink, flags: LogFlags, defaultScopeLevels: string): Logger {
  const stackTraceLevel = flags.log_stacktrace_level ?? '';
  try {
    parseLogLevels(stackTraceLevel);
  } catch (error) {
    throw optionError('--log_stacktrace_level', malformedValue(messageOf(error), stackTraceLevel));
  }
  try {
    return createLogger({
      outputLevel: [defaultScopeLevels, flags.log_output_level].filter(Boolean).join(','),
      asJson: flags.log_as_json === true,
      ...(flags.log_caller !== undefined && { callers: flags.log_caller }),
      stackTraceLevel,
      write: (line) => sink.write(line),
    });
  } catch (error) {
    throw optionError('--log_output_level', malformedValue(messageOf(error), flags.log_output_level));
  }
}

function unwritableLog(target: string, reason: string): ChartpilotError {
  const violation = mustBe('stdout, stderr or a file that can be written', target, { hint: reason });
  return optionError('--log_target', violation);
}

function sinkOf(target: string): LineSink {
  if (target === 'stdout') return standardOutput;
  if (target === 'stderr') return standardError;
  const pathError = pathErrorIn(target);
  if (pathError !== undefined) throw unwritableLog(target, pathError);
  const sink = openAppendingSink(target);
  // The log itself cannot report this.
  sink.listen({
    failed: (error) => standardError.write(`cannot write log to ${target}: ${messageOf(error)}\n`),
    recovered: () => standardError.write(`log is written to ${target} again\n`),
  });
  return sink;
}
