/** `chartpilot`: the debugger's command line. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { ChartpilotError, explainError } from '../runtime/errors.ts';
import { packageRoot } from '../runtime/package-root.ts';
import { endProgram, standardError, standardOutput } from '../runtime/standard-streams.ts';
import { checkCommand } from './commands/check.ts';
import { diagramCommand } from './commands/diagram.ts';
import { exploreCommand } from './commands/explore.ts';
import { generateCommand } from './commands/generate.ts';
import { replayCommand } from './commands/replay.ts';
import { traceCommand } from './commands/trace.ts';
import { visualizeCommand } from './commands/visualize.ts';
import { speakThroughSinks } from './speak-through-sinks.ts';

const output = {
  out: (text: string) => standardOutput.print(text),
  error: (text: string) => standardError.write(text),
};

/** In the order in which a person needs them. */
const commands = [
  visualizeCommand,
  checkCommand,
  traceCommand,
  replayCommand,
  diagramCommand,
  exploreCommand,
  generateCommand,
];

function version(): string {
  return (JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { version: string }).version;
}

function program(): Command {
  const chartpilot = new Command('chartpilot')
    .description('Debugger of pilot-agent and pilot-discovery: reads the traces that they write with --trace FILE.')
    .version(version())
    .showHelpAfterError("(run 'chartpilot --help' or 'chartpilot COMMAND --help')")
    .exitOverride();
  for (const make of commands) {
    // addCommand does not, unlike command(): a wrong flag would end the process with another exit code.
    chartpilot.addCommand(make(output).copyInheritedSettings(chartpilot));
  }
  return speakThroughSinks(chartpilot);
}

try {
  await program().parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has told the person; help and version that were asked for are no error.
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  } else {
    output.error(`chartpilot: ${explainError(error)}\n`);
    process.exitCode = error instanceof ChartpilotError ? 2 : 70;
  }
}
await endProgram();
