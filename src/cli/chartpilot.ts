/** `chartpilot`: the debugger's command line. */
import { Command } from 'commander';
import { ChartpilotError } from '../runtime/errors.ts';
import { reserveStandardOutput } from '../runtime/output/outlet.ts';
import { standardError, standardOutput } from '../runtime/output/standard-streams.ts';
import { packageVersion } from '../runtime/package-root.ts';
import { checkCommand } from './commands/check.ts';
import { diagramCommand } from './commands/diagram.ts';
import { exploreCommand } from './commands/explore.ts';
import { generateCommand } from './commands/generate.ts';
import { replayCommand } from './commands/replay.ts';
import { traceCommand } from './commands/trace.ts';
import { visualizeCommand } from './commands/visualize.ts';
import { runProgram } from './run-program.ts';

const output = {
  out: (text: string) => standardOutput.print(text),
  error: (text: string) => standardError.write(text),
};

/** In the order of a debugging session. */
const commands = [
  visualizeCommand,
  checkCommand,
  traceCommand,
  replayCommand,
  diagramCommand,
  exploreCommand,
  generateCommand,
];

function program(): Command {
  const chartpilot = new Command('chartpilot')
    .description(
      'Debugger for pilot-agent, pilot-discovery and XState machines: show, check and replay the traces that they record.',
    )
    .version(packageVersion(), '-V, --version', 'Print the version')
    .exitOverride();
  for (const make of commands) {
    // addCommand does not, unlike command(): a wrong flag would end the process with another exit code.
    chartpilot.addCommand(make(output).copyInheritedSettings(chartpilot));
  }
  return chartpilot;
}

/** A wrong flag, or something that cannot be read. 1 has a meaning of its own: a trace departs, a machine is broken. */
const misused = 2;
const bug = 70;

// explore, generate, replay and diagram execute a module of the user, which may print; their answers may be JSON.
reserveStandardOutput();
await runProgram(program(), { misused, failed: (error) => (error instanceof ChartpilotError ? misused : bug) });
