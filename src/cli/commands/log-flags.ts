/** The log flags of both programs (spec/discovery.md §1.2). */
import { appendFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { createLogger, type Logger } from '../../runtime/log.ts';

export interface LogFlags {
  readonly log_output_level: string;
  readonly log_as_json?: boolean;
  readonly log_target: string;
}

/** Adds them to a command. `--log_caller` and `--log_stacktrace_level` are taken and mean nothing here. */
export function addLogFlags(command: Command): Command {
  return command
    .addOption(new Option('--log_output_level <scope:level,…>', 'what is logged').default('default:info'))
    .addOption(new Option('--log_as_json', 'one JSON object a line'))
    .addOption(new Option('--log_target <where>', 'stdout, stderr or a file').default('stdout'))
    .addOption(new Option('--log_caller <scopes>').hideHelp())
    .addOption(new Option('--log_stacktrace_level <level>').hideHelp());
}

/**
 * @param quieter levels of scopes about which the flags say nothing: `envoy:debug`
 * @throws ChartpilotError FLAG_INVALID
 */
export function loggerFromFlags(flags: LogFlags, quieter = ''): Logger {
  try {
    return createLogger({
      outputLevel: [quieter, flags.log_output_level].filter(Boolean).join(','),
      asJson: flags.log_as_json === true,
      write: writerTo(flags.log_target),
    });
  } catch (error) {
    throw new ChartpilotError('FLAG_INVALID', `--log_output_level: ${messageOf(error)}`);
  }
}

function writerTo(target: string): (line: string) => void {
  if (target === 'stdout') return (line) => void process.stdout.write(line);
  if (target === 'stderr') return (line) => void process.stderr.write(line);
  try {
    appendFileSync(target, '');
  } catch (error) {
    throw new ChartpilotError('FLAG_INVALID', `--log_target ${target}: ${messageOf(error)}`);
  }
  return (line) => appendFileSync(target, line);
}
