import { delimiter } from 'node:path';
import { type Command, CommanderError } from 'commander';
import { ChartpilotError, explainError } from '../runtime/errors.ts';
import { absoluteFolders } from '../runtime/files/executable.ts';
import { endProgram, standardError } from '../runtime/output/standard-streams.ts';
import { reportFlagValues } from './flags/flag-values.ts';
import { plainSwitches } from './plain-switches.ts';
import { configureUsage, fullNameOf } from './usage.ts';

export interface FailureCodes {
  /** Exit code for an invalid command line, for which commander has printed the error. */
  readonly misused: number;
  readonly failed: (error: unknown) => number;
}

/** Replaces a PATH without an absolute folder, because an empty PATH means the working directory. */
const defaultPath = '/usr/bin:/bin';

/** Exits once all output is written, even if handles are still open. The exit code is `process.exitCode` if a command has set it. */
export async function runProgram(
  program: Command,
  codes: FailureCodes,
  args: readonly string[] = process.argv.slice(2),
): Promise<never> {
  await runCommandLine(program, codes, args);
  return endProgram();
}

export async function runCommandLine(
  program: Command,
  { misused, failed }: FailureCodes,
  args: readonly string[],
): Promise<void> {
  // Programs are never started from the working directory, which another user may own.
  if (process.env.PATH !== undefined)
    process.env.PATH = absoluteFolders(process.env.PATH).join(delimiter) || defaultPath;
  try {
    reportFlagValues(program, (message) => standardError.write(`${program.name()}: ${message}\n`));
    await configureUsage(program).parseAsync(plainSwitches(program, args), { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) {
      // Commander has printed the error. Help and version exit with 0.
      process.exitCode = error.exitCode === 0 ? 0 : misused;
    } else {
      standardError.write(`${program.name()}: ${explainError(error)}${helpLineOf(error, program, args)}\n`);
      process.exitCode = failed(error);
    }
  }
}

function helpLineOf(error: unknown, program: Command, args: readonly string[]): string {
  if (!(error instanceof ChartpilotError) || error.code !== 'FLAG_INVALID' || error.hint !== undefined) return '';
  const command = program.commands.find((candidate) => args.includes(candidate.name())) ?? program;
  return `\n  → See '${fullNameOf(command)} --help'`;
}
