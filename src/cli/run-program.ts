import { delimiter } from 'node:path';
import { type Command, CommanderError } from 'commander';
import { explainError } from '../runtime/errors.ts';
import { absoluteFolders } from '../runtime/files/executable.ts';
import { endProgram, standardError } from '../runtime/output/standard-streams.ts';
import { plainSwitches } from './plain-switches.ts';
import { reportRepeatedFlags } from './repeated-flags.ts';
import { speakThroughSinks } from './speak-through-sinks.ts';

/** Exit codes of a program that could not do what it was asked to. */
export interface FailureCodes {
  /** Its command line was wrong: the person has been told, with a hint. */
  readonly misused: number;
  /** What else was thrown: a mistake that a person can mend, or a bug of ours. */
  readonly failed: (error: unknown) => number;
}

/** For a PATH without an absolute folder: an empty one means the working directory. */
const usualPath = '/usr/bin:/bin';

/**
 * Runs a program's command line, tells what went wrong, and ends the process once its last words are out: nothing that
 * still has a handle open keeps it alive. The exit code is `process.exitCode` where a command has set it.
 */
export async function runProgram(
  program: Command,
  { misused, failed }: FailureCodes,
  args: readonly string[] = process.argv.slice(2),
): Promise<never> {
  // What this program starts by name is never found in its working directory, which another user may own.
  if (process.env.PATH !== undefined) process.env.PATH = absoluteFolders(process.env.PATH).join(delimiter) || usualPath;
  try {
    reportRepeatedFlags(program, (message) => standardError.write(`${program.name()}: ${message}\n`));
    await speakThroughSinks(program).parseAsync(plainSwitches(program, args), { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) {
      // Commander has told the person; help and version that were asked for are no error.
      process.exitCode = error.exitCode === 0 ? 0 : misused;
    } else {
      standardError.write(`${program.name()}: ${explainError(error)}\n`);
      process.exitCode = failed(error);
    }
  }
  return endProgram();
}
