import type { Command } from 'commander';
import { standardError, standardOutput } from '../runtime/output/standard-streams.ts';

/** Help and complaints of a program and all its commands go where its answers and errors go. @returns the program */
export function speakThroughSinks(program: Command): Command {
  program.configureOutput({
    writeOut: (text) => standardOutput.print(text),
    writeErr: (text) => standardError.write(text),
  });
  for (const command of program.commands) speakThroughSinks(command);
  return program;
}
