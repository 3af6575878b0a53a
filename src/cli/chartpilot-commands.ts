import { Command } from 'commander';
import { standardError, standardOutput } from '../runtime/output/standard-streams.ts';
import { packageVersion } from '../runtime/package-root.ts';
import { checkCommand } from './commands/check.ts';
import { diagramCommand } from './commands/diagram.ts';
import { exploreCommand } from './commands/explore.ts';
import { generateCommand } from './commands/generate.ts';
import { replayCommand } from './commands/replay.ts';
import { traceCommand } from './commands/trace.ts';
import { visualizeCommand } from './commands/visualize.ts';

const output = {
  out: (text: string) => standardOutput.print(text),
  error: (text: string) => standardError.write(text),
};

/** The help lists the commands in this order, which is that of a debugging session. */
const commands = [
  visualizeCommand,
  checkCommand,
  traceCommand,
  replayCommand,
  diagramCommand,
  exploreCommand,
  generateCommand,
];

export function chartpilot(): Command {
  const program = new Command('chartpilot')
    .description(
      'Debugger for pilot-agent, pilot-discovery and XState machines: show, check and replay the traces that they record.',
    )
    .version(packageVersion(), '-V, --version', 'Print the version')
    .exitOverride();
  for (const buildCommand of commands) {
    // Unlike `command()`, `addCommand` does not copy settings, and a wrong flag would exit with another code.
    program.addCommand(buildCommand(output).copyInheritedSettings(program));
  }
  return program;
}
